//! W3C Trace Context for [Pillarbox](https://docs.rs/pillarbox): the current span as two texts, and back.
//!
//! Use it through the feature `otel` of the `pillarbox` crate, which needs no more than that. What is here is the one place
//! that knows releases of OpenTelemetry and of its bridge to `tracing`; both break often. No type of theirs is shown. It
//! installs nothing: no exporter, no propagator, no global of any kind.

mod origin;

pub use origin::Origin;

use std::future::Future;

use opentelemetry::Context;
use opentelemetry::context::FutureExt as _;

/// Runs `future` as a part of the trace of `origin`: spans that begin in it are children of it. With `None` it runs as
/// part of no trace, whatever the thread it is polled on was doing.
pub fn within<F: Future>(origin: Option<Origin>, future: F) -> impl Future<Output = F::Output> + use<F> {
    future.with_context(origin.map_or_else(Context::new, Origin::into_context))
}
