//! What the suites cannot say of themselves, and of the outbox in memory.

mod health;
mod lessons;
mod reading;
mod registry;
