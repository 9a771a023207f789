//! Changes that an operator asks for: confirmed with their number, made, and recorded.

mod act;
mod action;
mod audit;
mod confirm;
mod jobs;
mod operation;
mod pause;
mod route;
mod run_to_completion;

pub(crate) use act::act;
pub(crate) use action::title;
pub(crate) use confirm::confirm;
pub(crate) use jobs::Jobs;
pub(crate) use pause::{pause, resume};
pub(crate) use route::{pause_route, probe, resume_route};
