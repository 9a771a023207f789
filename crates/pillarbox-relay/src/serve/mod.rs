//! The health, status and metrics of a running relay, over HTTP.

mod connections;
mod console;
mod endpoint;
mod pages;

pub use console::ConsoleServer;
pub use endpoint::{Endpoint, ServeError, Serving};

use std::sync::Arc;

use crate::report::Report;

/// Reports on the process as it is now.
pub type Reports = Arc<dyn Fn() -> Report + Send + Sync>;
