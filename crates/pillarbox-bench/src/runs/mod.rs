//! The benches: one file each. The part that several of them share is in [`beside`].

mod beside;

pub(crate) mod drain;
pub(crate) mod hot;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod mixed;
pub(crate) mod overhead;
pub(crate) mod relay;
pub(crate) mod steady;
pub(crate) mod write;
