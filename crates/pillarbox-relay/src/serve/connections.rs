use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The limits of connections. They close connections of clients that send or read too slowly, so that others are answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of open connections. Beyond it a new connection replaces the oldest that has sent no request, or else the oldest. So
    /// a probe that sends its request at once is answered, however many silent connections there are.
    pub(super) connections: usize,
    /// The longest time of a connection, from its beginning to the last byte of the answer.
    pub(super) time: Duration,
}

impl Limits {
    /// The limits of a console: a browser opens several connections at once, and a page may wait for the database.
    pub(super) fn of_browsers() -> Self {
        Self { connections: 256, time: Duration::from_secs(30) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, time: Duration::from_secs(10) }
    }
}

/// Serves one request for each connection, until told to stop. Probes and scrapes are far apart, so that connections which
/// stay open would gain nothing, and one that may not stay needs no other limits.
pub(super) async fn answer(mut listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut in_order: VecDeque<Connection> = VecDeque::new();
    // An error before a connection is accepted is ignored: this waits for the next connection.
    while let Some((stream, client)) = stop.run_until_cancelled(Listener::accept(&mut listener)).await {
        while connections.try_join_next().is_some() {}
        in_order.retain(|connection| !connection.task.is_finished());
        let silent =
            in_order.iter().position(|connection| !connection.has_sent_request.load(Ordering::Relaxed)).unwrap_or(0);
        if in_order.len() >= limits.connections
            && let Some(first) = in_order.remove(silent)
        {
            first.task.abort();
        }
        let (router, stop, has_sent_request) = (router.clone(), stop.clone(), Arc::<AtomicBool>::default());
        let sent = Arc::clone(&has_sent_request);
        let task = connections.spawn(async move {
            // The limit closes slow connections.
            drop(timeout(limits.time, serve_one_request(stream, client, router, sent, stop)).await);
        });
        in_order.push_back(Connection { task, has_sent_request });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection.
struct Connection {
    task: AbortHandle,
    /// True once its request has come.
    has_sent_request: Arc<AtomicBool>,
}

/// Serves one request. Once `stop` is cancelled, a request that has not come is not waited for.
async fn serve_one_request(
    stream: TcpStream,
    client: SocketAddr,
    router: Router,
    has_sent_request: Arc<AtomicBool>,
    stop: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        has_sent_request.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(ConnectInfo(client));
        router.call(request)
    });
    let mut connection = pin!(http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that disconnects or speaks another protocol is ignored.
        _ended = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    drop(connection.await);
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Answers `well` at an address of its own.
    async fn serve(limits: Limits) -> (SocketAddr, CancellationToken, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("has an address");
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let router = Router::new().route("/", get(|| std::future::ready("well")));
        tasks.spawn(answer(listener, router, limits, stop.clone()));
        (address, stop, tasks)
    }

    /// The answer to this text.
    async fn told(address: SocketAddr, says: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(says.as_bytes()).await.expect("says it");
        let mut answer = String::new();
        // A connection that is closed may be reset.
        drop(timeout(LONG, stream.read_to_string(&mut answer)).await.expect("it is not held for ever"));
        answer
    }

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    #[tokio::test]
    async fn connections_without_a_complete_request_are_closed() {
        let (address, _stop, _tasks) = serve(Limits { connections: 10, time: Duration::from_millis(100) }).await;
        for says in ["", "GET / HTTP/1.1\r\nHost: "] {
            assert_eq!(told(address, says).await, "", "{says:?}");
        }
        let (address, _stop, _tasks) = serve(Limits { connections: 10, time: LONG }).await;
        let answer = told(address, REQUEST).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("well"), "{answer}");
    }

    #[tokio::test]
    async fn of_too_many_connections_the_first_is_closed() {
        let (address, _stop, _tasks) = serve(Limits { connections: 2, time: 10 * LONG }).await;
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(TcpStream::connect(address).await.expect("connects"));
        }
        assert!(told(address, REQUEST).await.ends_with("well"), "it is not kept waiting");
        let mut still_there = silent.split_off(4);
        for mut stream in silent {
            let ended = timeout(LONG, stream.read_to_end(&mut Vec::new())).await.expect("it is closed");
            drop(ended);
        }
        let last = still_there.pop().expect("the fifth");
        assert!(last.try_read(&mut [0]).is_err(), "there is room for it beside the request");
    }

    #[tokio::test]
    async fn requests_are_answered_though_many_connections_come_after() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("has an address");
        let (asked, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go_on));
        let router = Router::new().route(
            "/",
            get(async move |ConnectInfo(client): ConnectInfo<SocketAddr>| {
                tell.notify_one();
                wait.notified().await;
                client.ip().to_string()
            }),
        );
        let limits = Limits { connections: 2, time: LONG };
        let mut tasks = JoinSet::new();
        tasks.spawn(answer(listener, router, limits, CancellationToken::new()));
        let mut asks = TcpStream::connect(address).await.expect("connects");
        asks.write_all(REQUEST.as_bytes()).await.expect("asks");
        asked.notified().await;
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(TcpStream::connect(address).await.expect("connects"));
        }
        let mut first = silent.remove(0);
        drop(timeout(LONG, first.read_to_end(&mut Vec::new())).await.expect("it is closed"));
        go_on.notify_one();
        let mut answer = String::new();
        timeout(LONG, asks.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
        assert!(answer.ends_with("127.0.0.1"), "{answer}");
    }

    #[tokio::test]
    async fn a_silent_client_does_not_hold_up_the_end() {
        let (address, stop, mut tasks) = serve(Limits { connections: 2, time: 10 * LONG }).await;
        let _silent = TcpStream::connect(address).await.expect("connects");
        assert!(told(address, REQUEST).await.ends_with("well"), "both are served");
        stop.cancel();
        timeout(LONG, tasks.join_next()).await.expect("it ends");
    }
}
