//! Recording what became of an event: verdicts, batched, fenced by ownership.

mod verdict;

pub use verdict::{Change, Status, Verdict};
