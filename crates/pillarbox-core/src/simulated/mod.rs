//! Hooks of the deterministic simulation, which exist under `cfg(simulated)` only and never in a release: processes that stand
//! still or die at any await, and bugs that are planted by name.

pub mod planted_bug;
mod process;

pub use process::{Governed, Process, TaskTracker, panics};
