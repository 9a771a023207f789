use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use pillarbox_console::{Access, Accounts, Console, Role, Source};
use pillarbox_core::event::{Envelope, EnvelopeBuilder};
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tower::ServiceExt as _;

/// The passwords of the accounts that [`accounts`] makes.
pub(crate) const OPERATOR: &str = "correct-horse-battery";
pub(crate) const READER: &str = "staple-of-twelve-letters";

/// A console that is asked without a network.
pub(crate) struct Site(pub(crate) Router);

/// What it answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("text")).unwrap_or_default()
    }

    /// The value of a hidden field of its form.
    pub(crate) fn field(&self, name: &str) -> &str {
        let (_, rest) = self
            .body
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap_or_else(|| panic!("no field {name}: {self:?}"));
        rest.split_once('"').expect("it ends").0
    }

    /// The session that it opens, as a browser sends it back.
    pub(crate) fn cookie(&self) -> String {
        self.header("set-cookie").split(';').next().expect("a cookie").to_owned()
    }
}

impl Site {
    pub(crate) fn new(console: Console) -> Self {
        Self(console.router())
    }

    /// A console for everybody on this host.
    pub(crate) fn open(store: &MemoryStore) -> Self {
        Self::new(Console::new(Access::loopback(Role::Operate)).source(source(store)))
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.0.clone().oneshot(request).await.expect("it answers");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 10_000_000).await.expect("a body");
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// A page, as a browser on this host asks for it.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(request("GET", path, headers, Body::empty())).await
    }

    /// A form, as a page of the console sends it.
    pub(crate) async fn post(&self, path: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        let own = [("sec-fetch-site", "same-origin"), ("content-type", "application/x-www-form-urlencoded")];
        let headers: Vec<(&str, &str)> = own.into_iter().chain(headers.iter().copied()).collect();
        self.ask(request("POST", path, &headers, Body::from(form.to_owned()))).await
    }

    /// The cookie of who has logged in with a password.
    pub(crate) async fn log_in(&self, name: &str, password: &str) -> String {
        let answer = self.post("/login", &format!("name={name}&password={password}"), &[]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
        answer.cookie()
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = if headers.iter().any(|(name, _)| *name == "host") {
        request
    } else {
        request.header(header::HOST, "localhost:9465")
    };
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(body).expect("a request")
}

pub(crate) fn source(store: &MemoryStore) -> Source {
    Source::of_store("shop", Arc::new(store.clone()))
}

/// One who operates, and one who reads.
pub(crate) fn accounts() -> Accounts {
    users(&format!("ada:operate:{OPERATOR}\nbob:read:{READER}\n"))
}

/// The accounts of a file with these lines.
pub(crate) fn users(lines: &str) -> Accounts {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), lines).expect("writes");
    Accounts::new().users_file(file.path()).expect("accounts")
}

pub(crate) fn event(event_type: &'static str) -> EnvelopeBuilder {
    Envelope::builder(event_type).payload_json(r#"{"total": 12.50, "password": "hunter2-payload"}"#)
}

/// Commits events that nobody delivers yet.
pub(crate) async fn write(store: &MemoryStore, events: impl IntoIterator<Item = EnvelopeBuilder>) {
    let outbox = Outbox::writer_only(store.clone()).start().await.expect("starts");
    let mut transaction = outbox.begin(store).await.expect("begins");
    for event in events {
        outbox.write(&mut transaction, event.build().expect("an event")).await.expect("writes");
    }
    transaction.commit().await.expect("commits");
    outbox.shutdown().await;
}

/// Commits events, and has them given up.
pub(crate) async fn write_dead(store: &MemoryStore, events: impl IntoIterator<Item = EnvelopeBuilder>) {
    use pillarbox_core::store::Admin as _;

    write(store, events).await;
    let refuse = async |_: Delivery| Err::<(), _>(HandlerError::unrecoverable("the card <b>was</b> declined"));
    let outbox = Outbox::single_node(store.clone()).handle_all(refuse).start().await.expect("starts");
    let ended = async {
        while store.counts().await.expect("counts").pending() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("all are given up");
    outbox.shutdown().await;
}
