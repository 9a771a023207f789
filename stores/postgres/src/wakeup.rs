use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{Listener, WakeUps, operation};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

use crate::PostgresStore;
use crate::connector::Wire;
use crate::error::Failure;

#[async_trait]
impl WakeUps for PostgresStore {
    async fn notify(&self) -> Result<(), StoreError> {
        let store = self.inner();
        let notifying = async {
            let session = store.sessions.session().await?;
            session.query(&store.sql.notify, &[]).await?;
            session.finish();
            Ok(())
        };
        store.sessions.call(operation::WAKE, notifying).await
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        let store = self.inner();
        let listen = async {
            let session = store.sessions.session().await?;
            let found = session.query(&store.sql.channel, &[]).await?;
            session.finish();
            let channel: String = found.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
            let (client, wire) = store.sessions.connect().await?;
            let mut ear = Ear { client, wire: Some(wire), address: store.sessions.address().to_owned(), probe: PROBE };
            ear.subscribe(&channel).await?;
            Ok(ear)
        };
        Ok(Box::new(store.sessions.call(operation::LISTEN, listen).await?))
    }
}

/// The silence after which the server is probed, and the time that it has to answer. Keepalives of TCP may be answered by a
/// proxy, or be set to hours by a configuration.
const PROBE: Probe = Probe { after: Duration::from_secs(60), patience: Duration::from_secs(15) };

#[derive(Debug, Clone, Copy)]
struct Probe {
    after: Duration,
    patience: Duration,
}

/// A connection of its own that listens. The server's side of it sends nothing by itself but notifications.
struct Ear {
    client: Client,
    /// `None` once it has ended.
    wire: Option<Wire>,
    address: String,
    probe: Probe,
}

impl Ear {
    /// Listens. A notification that comes with the answer is one before the listener was handed out.
    async fn subscribe(&mut self, channel: &str) -> Result<(), Failure> {
        self.ask(&format!("LISTEN \"{channel}\"")).await.map(|_notified| ())
    }

    /// Sends a statement and waits for its answer. True if notifications came meanwhile.
    async fn ask(&mut self, statement: &str) -> Result<bool, Failure> {
        let Self { client, wire, .. } = self;
        let mut answer = std::pin::pin!(client.batch_execute(statement));
        let mut is_notified = false;
        poll_fn(|cx| {
            is_notified |= poll_notifications(wire, cx)?;
            answer.as_mut().poll(cx).map_err(Failure::from)
        })
        .await?;
        Ok(is_notified)
    }

    /// Waits for a notification, and asks the server after each silence whether it is there.
    async fn wait(&mut self) -> Result<(), Failure> {
        let Probe { after, patience } = self.probe;
        loop {
            let notified = poll_fn(|cx| match poll_notifications(&mut self.wire, cx) {
                Ok(false) => Poll::Pending,
                Ok(true) => Poll::Ready(Ok(())),
                Err(error) => Poll::Ready(Err(error)),
            });
            if let Ok(notified) = timeout(after, notified).await {
                return notified;
            }
            match timeout(patience, self.ask("")).await {
                Ok(Ok(false)) => {}
                Ok(answered) => return answered.map(|_notified| ()),
                Err(_elapsed) => {
                    self.wire = None;
                    return Err(unavailable("the server has not answered on the connection that listens"));
                }
            }
        }
    }
}

#[async_trait]
impl Listener for Ear {
    async fn notified(&mut self) -> Result<(), StoreError> {
        self.wait().await.map_err(|failure| failure.during(operation::LISTEN, &self.address))
    }
}

fn unavailable(problem: &str) -> Failure {
    Failure::Refused(StoreErrorKind::Unavailable, problem.to_owned())
}

/// Takes all notifications that have arrived. True if there were any.
fn poll_notifications(wire: &mut Option<Wire>, cx: &mut Context<'_>) -> Result<bool, Failure> {
    let mut is_notified = false;
    while poll_notification(wire, cx)?.is_ready() {
        is_notified = true;
    }
    Ok(is_notified)
}

/// Moves what is under way on the connection, and is ready when a notification arrived.
fn poll_notification(wire: &mut Option<Wire>, cx: &mut Context<'_>) -> Result<Poll<()>, Failure> {
    let closed = || unavailable("the server closed the connection");
    let open = wire.as_mut().ok_or_else(closed)?;
    loop {
        match open.poll_message(cx) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => return Ok(Poll::Ready(())),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => {
                *wire = None;
                return Err(error.into());
            }
            Poll::Ready(None) => {
                *wire = None;
                return Err(closed());
            }
        }
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("address", &self.address).field("open", &self.wire.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use pillarbox_testkit::publishers::{Link as _, Proxy};

    use super::*;
    use crate::PostgresOptions;

    #[tokio::test]
    async fn a_silent_server_is_asked_whether_it_is_there() {
        let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
            .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
        let place = PostgresOptions::parse(&url).expect("a valid URL").connect().await;
        let place =
            place.unwrap_or_else(|error| panic!("{error}; this test needs PostgreSQL: run it by ./scripts/test"));
        let address = place.inner().sessions.address().split('/').next().expect("a host").to_owned();
        let server = address.to_socket_addrs().expect("an address").next().expect("a host");
        let proxy = Proxy::to(server).await.expect("a port is free");
        let through = url.replace(&address, &format!("127.0.0.1:{}", proxy.port()));
        let store = PostgresOptions::parse(&through).expect("a valid URL").connect().await.expect("connects");

        let (client, wire) = store.inner().sessions.connect().await.expect("connects");
        let probe = Probe { after: Duration::from_millis(100), patience: Duration::from_secs(2) };
        let mut ear = Ear { client, wire: Some(wire), address, probe };
        ear.subscribe("pillarbox_probed").await.expect("listens");
        let silence = timeout(Duration::from_secs(1), ear.notified()).await;
        assert!(silence.is_err(), "it answers, and nobody has notified: {silence:?}");
        let (other, connection) = place.inner().sessions.connect().await.expect("connects");
        let notify = async {
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                sent = other.batch_execute("NOTIFY pillarbox_probed") => sent.expect("notifies"),
                _ = poll_fn(|cx| connection.poll_message(cx).map(|_| ())) => panic!("the connection has ended"),
            }
        };
        let (heard, ()) = tokio::join!(timeout(Duration::from_secs(5), ear.notified()), notify);
        heard.expect("in time").expect("it hears after it was probed");

        proxy.stall();
        let lost = timeout(Duration::from_secs(10), ear.notified()).await.expect("it does not wait for ever");
        let lost = lost.expect_err("nobody answers");
        assert!(lost.kind() == StoreErrorKind::Unavailable && lost.to_string().contains("has not answered"), "{lost}");
        let lost = ear.notified().await.expect_err("it stays so");
        assert_eq!(lost.kind(), StoreErrorKind::Unavailable);
    }
}
