//! The log on stderr, and traces for a collector.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use pillarbox::error::BoxError;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Installs both. The exporter reads the variables of OpenTelemetry; without an endpoint it is left out.
pub(crate) fn install() -> Result<SdkTracerProvider, BoxError> {
    let resource = Resource::builder().with_service_name("shop").build();
    let mut provider = SdkTracerProvider::builder().with_resource(resource);
    if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
        // The exporter's client asks for a provider of TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        provider = provider.with_batch_exporter(SpanExporter::builder().with_http().build()?);
    }
    let provider = provider.build();
    // Pillarbox's spans of handlers and messages are of level DEBUG.
    let spans = Targets::new()
        .with_target("traced_orders", LevelFilter::INFO)
        .with_target("pillarbox_engine::dispatch", LevelFilter::DEBUG)
        .with_target("pillarbox_routes", LevelFilter::DEBUG);
    let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop")).with_filter(spans);
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(log).with(traces).init();
    Ok(provider)
}
