//! The observation of an outbox: its counters and metrics, its health, and logs that stay short.
//!
//! Metrics leave through the [`metrics`] facade, to whatever recorder the program installed before it started the outbox;
//! without one they cost next to nothing. `docs/metrics.md` has the table of them, a contract that a test compares with
//! the code.

pub mod buckets;
mod calls;
mod counters;
mod error_text;
mod failures;
mod figures;
mod health;
mod latencies;
mod loops;
mod meters;
mod metrics_factory;
mod paused;
mod role;
mod telemetry;

pub(crate) use calls::{Calls, Slot};
pub(crate) use counters::Counters;
pub use counters::Stats;
pub(crate) use error_text::{clean_error, panic_message};
pub(crate) use failures::{Consequence, Failed, FailureLog};
pub(crate) use figures::ReadFigures;
pub use health::{Health, Problem};
pub(crate) use loops::{Loops, Reason};
pub(crate) use meters::Meters;
pub(crate) use metrics_factory::MetricsFactory;
pub use role::Role;
pub(crate) use telemetry::Telemetry;
