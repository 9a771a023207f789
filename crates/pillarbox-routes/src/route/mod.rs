//! The routes: what an event has to be like, where it then goes, and how.

mod error;
mod line;
mod route;
mod routes;

pub use error::{CheckError, RouteError};
pub(crate) use line::{Line, Sending};
pub use route::Route;
pub use routes::{Routes, Unrouted};
