//! Creating, adopting, upgrading and checking the tables.
//!
//! Statements that make tables commit by themselves, so a migration may be cut short between any two of them. Each of
//! them is therefore one that may be run again, they run one process at a time, and the version is recorded last.

mod adopt;
mod blockers;
mod check;
mod columns;
mod migrate;
mod run_script;
mod versions;

pub(crate) use check::check;
pub(crate) use migrate::migrate;
pub(crate) use versions::{key, script};
