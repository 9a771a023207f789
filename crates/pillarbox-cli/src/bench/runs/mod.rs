//! The benches: one file each.

pub(crate) mod drain;
pub(crate) mod hot;
pub(crate) mod write;
