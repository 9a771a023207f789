//! Recording what became of an event: verdicts, batched, fenced by ownership.

mod decide;
mod settler;

pub(crate) use decide::{AttemptEnd, Decision, Rules, decide_row, uncounted};
pub(crate) use settler::{Complaints, Settler};
