//! Recording what became of an event: verdicts, batched, fenced by ownership.

mod decide;
mod settler;

pub(crate) use decide::{Attempt, Decision, Rules, decide, uncounted};
pub(crate) use settler::{Complaints, Settler};
