//! Recording what became of an event: verdicts, batched, fenced by ownership.

mod cooling;
mod decide;
mod error_text;
mod settler;
mod verdict;

pub(crate) use cooling::Cooling;
pub(crate) use decide::{Attempt, Decision, Rules, decide};
pub(crate) use error_text::clean_error;
pub(crate) use settler::{Complaints, Settler};
pub use verdict::{Change, Status, Verdict};
