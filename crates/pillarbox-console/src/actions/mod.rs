//! Changes that an operator asks for: confirmed with their number, made, and recorded.

mod act;
mod action;
mod confirm;
mod jobs;
mod operation;
mod probe;

pub(crate) use act::act;
pub(crate) use action::Action;
pub(crate) use confirm::confirm;
pub(crate) use jobs::Jobs;
pub(crate) use probe::probe;
