//! Traces for a collector of OpenTelemetry, as the [standard's variables](https://opentelemetry.io/docs/specs/otel/protocol/exporter/)
//! ask for: OTLP over HTTP.

use std::env;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const HTTP: &str = "http/protobuf";
const OFF: [(&str, &str); 2] = [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")];

/// Spans of messages on their way to a collector.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

/// The reason why traces cannot be sent.
#[derive(Debug, Error)]
pub enum TracesError {
    /// It asks for a protocol other than the one there is.
    #[error("{variable} is `{value}`, and traces are sent by {HTTP} only: set it to {HTTP}, or leave it out")]
    Protocol {
        /// The variable that asks for it.
        variable: &'static str,
        /// The protocol.
        value: String,
    },
    /// The exporter refuses an endpoint, a header or a time limit.
    #[error("the variables of OpenTelemetry cannot be used: {0}")]
    Exporter(#[from] ExporterBuildError),
}

impl Traces {
    /// Sends traces where `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` says; `None` without them, or where
    /// `OTEL_SDK_DISABLED=true` or `OTEL_TRACES_EXPORTER=none` turns them off. They come from `service` unless
    /// `OTEL_SERVICE_NAME` says otherwise. It needs the process's TLS provider to be installed.
    ///
    /// # Errors
    /// When a variable asks for another protocol, or for what makes no exporter.
    pub fn from_environment(service: &'static str) -> Result<Option<Self>, TracesError> {
        let is_set = |name: &&str| set(name).is_some();
        if !ENDPOINTS.iter().any(is_set) || OFF.iter().any(|(name, off)| set(name).as_deref() == Some(*off)) {
            return Ok(None);
        }
        if let Some((variable, value)) = PROTOCOLS.iter().find_map(|name| set(name).map(|value| (*name, value)))
            && value != HTTP
        {
            return Err(TracesError::Protocol { variable, value });
        }
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build()?;
        let resource = if set("OTEL_SERVICE_NAME").is_some() {
            Resource::builder()
        } else {
            Resource::builder().with_service_name(service)
        };
        let provider = SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter);
        Ok(Some(Self(provider.build())))
    }

    /// The layer that takes the span of each message: see `docs/context.md`.
    pub(crate) fn layer<S>(&self) -> impl Layer<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let messages = filter_fn(|metadata| metadata.is_span() && metadata.name() == "publish");
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("pillarbox")).with_filter(messages)
    }

    /// Sends the rest, for 5 s at most.
    pub async fn shut_down(self) {
        // It waits for the collector on the thread that calls it.
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// The value of a variable that is set to something.
fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
