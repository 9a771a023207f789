//! What is told about a running relay, over HTTP.

mod connections;
mod endpoint;
mod pages;
mod prometheus;

pub(crate) use endpoint::Endpoint;
pub use endpoint::ServeError;
pub use prometheus::prometheus;

use std::sync::Arc;

use crate::relay::SourceReport;

/// What there is to tell now, of each source; `None` until the relay has started.
pub(crate) type Reports = Arc<dyn Fn() -> Option<Vec<SourceReport>> + Send + Sync>;
