//! Examinations: the checks of a doctor in a database or at a broker, and their findings.
//!
//! Stores and publishers declare their [`Check`]s and judge them; `pillarbox-doctor` runs them side by side, within time limits, with
//! those that all stores have in common.

mod check;
mod statement;
mod thresholds;

pub use check::{Check, Checked, Judgement, Severity};
pub use statement::beginning;
pub use thresholds::Thresholds;
