//! An endpoint for tests, which answers as its path says and counts every request.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]
#![allow(dead_code, reason = "each test target uses a part of it")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox_core::event::EventId;
use pillarbox_core::publisher::Message;
use pillarbox_webhook::{WebhookOptions, WebhookPublisher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// The largest body that `/guarded` takes.
pub(crate) const LARGEST: usize = 1_000_000;

/// A request that came in.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }
}

#[derive(Debug)]
pub(crate) struct Seen {
    requests: Mutex<Vec<Received>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    /// Requests to `/meet` answer when four of them are there.
    meeting: Barrier,
}

/// The endpoint. It is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    /// Aborted when the endpoint is dropped.
    _tasks: JoinSet<()>,
}

impl Endpoint {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen {
            requests: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            meeting: Barrier::new(4),
        });
        let router = Router::new()
            .route("/status/{code}", any(status))
            .route("/pause/{code}/{*after}", any(pause))
            .route("/huge/{code}", any(huge))
            .route("/guarded/{*path}", any(guarded))
            .route("/never", any(std::future::pending::<()>))
            .route("/never/{*tenant}", any(std::future::pending::<()>))
            .route("/drip", any(drip))
            .route("/meet", any(meet))
            .route("/echo", any(echo))
            .fallback(|| async { StatusCode::NO_CONTENT })
            .layer(DefaultBodyLimit::disable())
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&seen), record))
            .with_state(Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.expect("serves") });
        Self { address, seen, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().expect("not poisoned").clone()
    }

    /// How many requests were under way at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.seen.most.load(Ordering::SeqCst)
    }
}

async fn record(
    State(seen): State<Arc<Seen>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    seen.requests.lock().expect("not poisoned").push(Received {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        headers: parts.headers.clone(),
        body: body.clone(),
    });
    let now = seen.under_way.fetch_add(1, Ordering::SeqCst) + 1;
    seen.most.fetch_max(now, Ordering::SeqCst);
    let response = next.run(axum::extract::Request::from_parts(parts, Body::from(body))).await;
    seen.under_way.fetch_sub(1, Ordering::SeqCst);
    response
}

async fn status(Path(code): Path<u16>) -> Response {
    let code = StatusCode::from_u16(code).expect("a status");
    (code, [(header::LOCATION, "https://other.example/new?token=hunter2")], format!("said {code}")).into_response()
}

async fn pause(Path((code, after)): Path<(u16, String)>) -> Response {
    (StatusCode::from_u16(code).expect("a status"), [(header::RETRY_AFTER, after.replace('_', " "))]).into_response()
}

async fn huge(Path(code): Path<u16>) -> Response {
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 8192])));
    (StatusCode::from_u16(code).expect("a status"), Body::from_stream(endless)).into_response()
}

/// Refuses, and repeats the credentials as they were sent and as they are read.
async fn echo(headers: HeaderMap) -> (StatusCode, String) {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let read = sent.strip_prefix("Basic ").map(|credentials| STANDARD.decode(credentials).expect("Base64"));
    let read = String::from_utf8(read.unwrap_or_default()).expect("UTF-8");
    (StatusCode::UNAUTHORIZED, format!("not for {sent}, which is {read}."))
}

/// What asks for a token, and takes no body of more than [`LARGEST`] bytes.
async fn guarded(headers: HeaderMap, body: Bytes) -> StatusCode {
    match headers.get(header::AUTHORIZATION) {
        Some(value) if value == "Bearer open-sesame" => {
            if body.len() > LARGEST {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::NO_CONTENT
            }
        }
        _ => StatusCode::UNAUTHORIZED,
    }
}

/// An answer whose body never ends and never goes on.
async fn drip() -> Response {
    let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"x")) });
    Body::from_stream(futures_util::StreamExt::chain(first, futures_util::stream::pending())).into_response()
}

async fn meet(State(seen): State<Arc<Seen>>) {
    seen.meeting.wait().await;
}

/// A listener of [`raw`]. It is gone when this is dropped.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    pub(crate) count: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

/// A listener at each address of this host that hands each connection to `serve` and counts them.
pub(crate) async fn raw<F, S>(serve: S) -> Raw
where
    S: Fn(TcpStream) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().expect("an address").port()));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            connections.spawn(serve(stream));
        }
    });
    Raw { address, count, _tasks: tasks }
}

pub(crate) fn options() -> WebhookOptions {
    let mut options = WebhookOptions::default();
    options.allow_private = true;
    options
}

pub(crate) fn publisher() -> WebhookPublisher {
    WebhookPublisher::new(options()).expect("options")
}

pub(crate) fn message(target: impl Into<Arc<str>>, id: usize) -> Message {
    Message::new(target, EventId::new(format!("event-{id}")).expect("an id"), format!("{{\"n\":{id}}}"))
}

pub(crate) fn keyed(target: impl Into<Arc<str>>, id: usize, key: &str) -> Message {
    let mut message = message(target, id);
    message.key = Some(key.into());
    message
}

pub(crate) fn of_tenant(tenant: &str, mut message: Message) -> Message {
    message.tenant = Some(tenant.into());
    message
}
