//! Recording what became of an event: verdicts, batched, fenced by ownership.

mod decide;
mod error_text;
mod settler;
mod verdict;

pub(crate) use decide::{Attempt, Rules, decide};
pub(crate) use error_text::clean_error;
pub(crate) use settler::Settler;
pub use verdict::{Change, Status, Verdict};
