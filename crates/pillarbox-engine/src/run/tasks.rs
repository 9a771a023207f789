//! The sets of tasks of an outbox. In the simulation, tasks belong to a process that can stand still or die.

#[cfg(not(simulated))]
pub(super) use tokio_util::task::TaskTracker;

#[cfg(simulated)]
pub(super) use pillarbox_core::simulated::TaskTracker;
