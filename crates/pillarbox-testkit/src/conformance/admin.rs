//! The requests of operators to a store.

pub(super) mod audit;
pub(super) mod backlog;
pub(super) mod blocked;
pub(super) mod control;
pub(super) mod counts;
pub(super) mod dead;
pub(super) mod inbox;
pub(super) mod nodes;
pub(super) mod partitions;
pub(super) mod pauses;
pub(super) mod pending;
pub(super) mod purge;
pub(super) mod recent;
pub(super) mod record;
pub(super) mod replay;
pub(super) mod states;
