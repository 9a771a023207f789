//! Looking after the table: DEAD and pending events, what is over, and where reading begins.

mod dead;
mod dead_reasons;
mod gauge_reporter;
mod moment;
mod pauses;
mod pending;
mod purger;
mod read_point;

pub use dead::{Changed, DeadEvents};
pub use dead_reasons::{DeadReason, DeadReasons};
pub(crate) use gauge_reporter::GaugeReporter;
pub use moment::{InvalidMoment, Moment};
pub use pauses::{PauseNote, Pauses};
pub use pending::{PendingChange, PendingEvents};
pub use purger::purge;
pub(crate) use purger::{Purger, Task};
pub(crate) use read_point::ReadPointKeeper;
