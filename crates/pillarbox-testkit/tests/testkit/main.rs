//! What the suites cannot say of themselves, and of the outbox in memory.

mod following;
mod health;
mod lessons;
mod modes;
mod reading;
mod refused;
mod registry;
mod unrecorded;
mod written;
