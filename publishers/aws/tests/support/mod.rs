//! SNS and SQS as far as publishers meet them, in memory.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]
#![allow(dead_code, reason = "each test target uses a part of it")]

mod protocol;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox_aws::AwsOptions;
use pillarbox_testkit::publishers::Arrived;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const KEY_ID: &str = "AKIDRIGHT";
pub(crate) const SECRET: &str = "open-sesame";

/// A message as the service got it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) group: Option<String>,
    pub(crate) dedup: Option<String>,
}

impl Received {
    /// What the consumer makes of it.
    pub(crate) fn decoded(&self) -> Arrived {
        let mut headers: Vec<(String, String)> = self.attributes.clone().into_iter().collect();
        if let Some(rest) = self.attributes.get("event-headers") {
            headers.extend(serde_json::from_str::<BTreeMap<String, String>>(rest).expect("JSON"));
        }
        let base64 = self.attributes.get("content-encoding").is_some_and(|encoding| encoding == "base64");
        let body =
            if base64 { STANDARD.decode(self.body.trim()).expect("Base64") } else { self.body.clone().into_bytes() };
        let content_type = self.attributes.get("content-type").cloned();
        Arrived { content_type, headers, body, ..Arrived::default() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) targets: HashMap<String, Vec<Received>>,
    /// Answers to the next batches, in the place of taking them: status and code.
    pub(crate) refusals: VecDeque<(u16, &'static str)>,
    /// The sizes of all batches.
    pub(crate) batches: Vec<usize>,
}

/// The service. It is gone when it is dropped.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    books: Arc<Mutex<Books>>,
    names: AtomicUsize,
    _tasks: JoinSet<()>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let books = Arc::new(Mutex::new(Books::default()));
        let router = Router::new().fallback(answer).layer(DefaultBodyLimit::disable()).with_state(Arc::clone(&books));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.expect("serves") });
        Self { address, books, names: AtomicUsize::new(0), _tasks: tasks }
    }

    pub(crate) fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().expect("not poisoned")
    }

    pub(crate) fn name(&self) -> String {
        format!("target-{}", self.names.fetch_add(1, Ordering::SeqCst))
    }

    pub(crate) fn make(&self, name: String) -> String {
        self.books().targets.insert(name.clone(), Vec::new());
        name
    }

    pub(crate) fn received(&self, name: &str) -> Vec<Received> {
        self.books().targets.get(name).cloned().unwrap_or_default()
    }
}

pub(crate) fn options(port: u16) -> AwsOptions {
    let mut options = AwsOptions::default();
    options.region = Some("eu-central-1".to_owned());
    options.endpoint_url = Some(format!("http://127.0.0.1:{port}").into());
    options.access_key_id = Some(KEY_ID.to_owned());
    options.secret_access_key = Some(SECRET.into());
    options
}

pub(crate) fn arn(name: &str) -> String {
    format!("arn:aws:sns:eu-central-1:123456789012:{name}")
}

async fn answer(State(books): State<Arc<Mutex<Books>>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let call = protocol::read(&header("x-amz-target"), &body);
    let mut books = books.lock().expect("not poisoned");
    if !header("authorization").contains(&format!("Credential={KEY_ID}/")) {
        return call.refuse(403, "InvalidClientTokenId").into_response();
    }
    let name = call.name();
    if !books.targets.contains_key(&name) {
        let (status, code) = if call.is_sqs { (400, "QueueDoesNotExist") } else { (404, "NotFound") };
        return call.refuse(status, code).into_response();
    }
    let Some(messages) = &call.messages else { return call.described(&name).into_response() };
    books.batches.push(messages.len());
    if let Some((status, code)) = books.refusals.pop_front() {
        return call.refuse(status, code).into_response();
    }
    let total: usize = messages.iter().map(|one| one.body.len()).sum();
    let largest = if call.is_sqs { 1_048_576 } else { 262_144 };
    assert!((1..=10).contains(&messages.len()) && total <= largest, "{} messages, {total} bytes", messages.len());
    let mut outcomes = Vec::new();
    for message in messages {
        assert!(message.attributes.len() <= 10, "{:?}", message.attributes);
        if let Some(code) = message.attributes.get("x-fail") {
            outcomes.push((message.id.clone(), Some(code.clone())));
            continue;
        }
        let kept = books.targets.entry(name.clone()).or_default();
        // FIFO takes an id once, and confirms it again.
        let seen = message.dedup.is_some() && kept.iter().any(|one| one.dedup == message.dedup);
        if !seen {
            kept.push(message.clone());
        }
        if !message.attributes.contains_key("x-forgotten") {
            outcomes.push((message.id.clone(), None));
        }
    }
    (StatusCode::OK, call.outcomes(&outcomes)).into_response()
}
