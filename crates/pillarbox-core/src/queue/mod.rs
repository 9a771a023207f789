//! What is in memory: events on their way to a worker, and the register of who holds which row.
//!
//! Everything here is a hint. The table is the truth, and all of it may vanish at any moment without losing an event.

mod intake;
mod lanes;
mod registry;

pub(crate) use intake::Intake;
pub(crate) use lanes::{Item, Lanes};
pub(crate) use registry::Registry;
