//! The routes: what an event has to be like, where it then goes, and how.

mod error;
mod line;
mod routes;
mod rule;

pub use error::{CheckError, RouteError};
pub(crate) use line::{Line, Sending};
pub(crate) use routes::Built;
pub use routes::{Routes, Unrouted};
pub use rule::Route;
