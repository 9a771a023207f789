use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// A collector of OpenTelemetry that keeps what it is sent by OTLP over HTTP, as protocol buffers.
#[derive(Debug)]
pub struct Collector {
    /// The value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub endpoint: String,
    kept: Arc<Kept>,
    _server: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Kept {
    spans: Mutex<Vec<CollectedSpan>>,
    more: Notify,
}

/// A span as it came. Ids are hexadecimal.
#[derive(Debug, Clone)]
pub struct CollectedSpan {
    /// The attribute `service.name` of its resource.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The id of its trace.
    pub trace_id: String,
    /// Its own id.
    pub span_id: String,
    /// The id of its parent; empty if it has none.
    pub parent_id: String,
    /// The code of its status: 0 unset, 1 fine, 2 an error.
    pub status: i32,
    /// The text of its status.
    pub problem: String,
    /// Its attributes, as texts.
    pub attributes: BTreeMap<String, String>,
}

impl Collector {
    /// Listens on a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
        let kept = Arc::<Kept>::default();
        let router = Router::new().route("/v1/traces", post(collect)).with_state(Arc::clone(&kept));
        #[expect(clippy::disallowed_methods, reason = "the collector stops it when it is dropped")]
        let server = tokio::spawn(async { axum::serve(listener, router).into_future().await.expect("serves") });
        Self { endpoint, kept, _server: AbortOnDropHandle::new(server) }
    }

    /// The spans of this name so far.
    #[must_use]
    pub fn spans(&self, name: &str) -> Vec<CollectedSpan> {
        let spans = self.kept.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().filter(|span| span.name == name).cloned().collect()
    }

    /// Waits for `count` spans of this name, half a minute at most.
    pub async fn wait_for(&self, name: &str, count: usize) -> Vec<CollectedSpan> {
        let enough = async {
            loop {
                let more = self.kept.more.notified();
                let spans = self.spans(name);
                if spans.len() >= count {
                    return spans;
                }
                more.await;
            }
        };
        let found = timeout(Duration::from_secs(30), enough).await;
        found.unwrap_or_else(|_| panic!("{count} spans called `{name}` are wanted; these came: {:#?}", self.kept.spans))
    }
}

async fn collect(
    State(kept): State<Arc<Kept>>,
    body: Bytes,
) -> (StatusCode, [(header::HeaderName, &'static str); 1], Vec<u8>) {
    let request = ExportTraceServiceRequest::decode(body).expect("a request of OTLP");
    let came = request.resource_spans.into_iter().flat_map(|resource| {
        let attributes = resource.resource.map(|resource| texts(resource.attributes)).unwrap_or_default();
        let service = attributes.get("service.name").cloned().unwrap_or_default();
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.map(move |span| {
            let status = span.status.unwrap_or_default();
            CollectedSpan {
                service: service.clone(),
                name: span.name,
                trace_id: hexadecimal(&span.trace_id),
                span_id: hexadecimal(&span.span_id),
                parent_id: hexadecimal(&span.parent_span_id),
                status: status.code,
                problem: status.message,
                attributes: texts(span.attributes),
            }
        })
    });
    kept.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(came);
    kept.more.notify_waiters();
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/x-protobuf")], answer)
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(is_so) => is_so.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key, attribute.value.and_then(|value| value.value).map(text).unwrap_or_default()))
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
