//! Starting, running and stopping an outbox. The only place that spawns tasks.

mod builder;
mod config;
mod outbox;
mod role;
mod supervisor;
mod term;

pub use builder::SingleNode;
pub use config::{ClaimConfig, Config, DispatchConfig, OwnershipConfig, RetryConfig, SettleConfig, ShutdownConfig};
pub use outbox::Outbox;
pub(crate) use outbox::Shared;
pub use role::Role;
