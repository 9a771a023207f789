//! What is told about a running relay, over HTTP.

mod connections;
mod endpoint;
mod pages;
mod prometheus;

pub use endpoint::{Endpoint, ServeError, Serving};
use prometheus::prometheus;

use std::sync::Arc;

use crate::report::SourceReport;

/// What there is to tell now, of each source; `None` until the process has started.
pub type Reports = Arc<dyn Fn() -> Option<Vec<SourceReport>> + Send + Sync>;
