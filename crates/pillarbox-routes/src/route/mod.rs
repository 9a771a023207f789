//! The routes: what an event has to be like, where it then goes, and how.

mod error;
mod pausable_types;
mod routes;
mod rule;
mod runtime;

pub use error::{CheckError, RouteError};
pub(crate) use routes::Built;
pub use routes::{Routes, Unrouted};
pub use rule::Route;
pub(crate) use runtime::{RouteOutput, RouteRuntime};
