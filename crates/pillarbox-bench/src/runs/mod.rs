//! The benches: one file each, but for `hot` and `mixed`, which share [`flat_out`]. The parts that several of them share
//! are in [`backlog`] and [`beside`].

mod backlog;
mod beside;

pub(crate) mod console;
pub(crate) mod drain;
pub(crate) mod flat_out;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod overhead;
pub(crate) mod purge;
pub(crate) mod relay;
pub(crate) mod steady;
pub(crate) mod write;
