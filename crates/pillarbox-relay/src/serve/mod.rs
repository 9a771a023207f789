//! What is told about a running relay, over HTTP.

mod endpoint;
mod pages;

pub(crate) use endpoint::Endpoint;
pub use endpoint::ServeError;

use std::sync::Arc;

use crate::relay::SourceReport;

/// What there is to tell now, of each source.
pub(crate) type Reports = Arc<dyn Fn() -> Vec<SourceReport> + Send + Sync>;
