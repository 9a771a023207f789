//! The health, status and metrics of a running relay, over HTTP.

mod connections;
mod console;
mod endpoint;
mod pages;

pub use console::ConsoleServer;
pub use endpoint::{Endpoint, ServeError, Serving};

use std::sync::Arc;

use crate::report::SourceReport;

/// Reports on each source as it is now; `None` until the process has started.
pub type Reports = Arc<dyn Fn() -> Option<Vec<SourceReport>> + Send + Sync>;
