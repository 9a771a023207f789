//! Creating, adopting, upgrading and checking the tables.

mod adopt;
mod blockers;
mod build_index;
mod check;
mod migrate;
mod run_script;
mod versions;

pub(crate) use check::check;
pub(crate) use migrate::migrate;
pub(crate) use versions::{create_index, script};
