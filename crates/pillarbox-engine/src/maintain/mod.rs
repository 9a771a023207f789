//! Looking after the table: DEAD events, and what is over.

mod dead;
mod gauge_reporter;
mod purger;

pub use dead::{Changed, DeadEvents};
pub(crate) use gauge_reporter::GaugeReporter;
pub use purger::purge;
pub(crate) use purger::{Purger, Task};
