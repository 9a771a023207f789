//! Looking after the table: DEAD events, and what is over.

mod dead;
mod purger;
mod surveyor;

pub use dead::DeadEvents;
pub use purger::purge;
pub(crate) use purger::{Purger, Task};
pub(crate) use surveyor::Surveyor;
