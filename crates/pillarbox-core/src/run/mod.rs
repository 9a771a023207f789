//! Starting, running and stopping an outbox. The only place that spawns tasks.

mod builder;
mod config;
pub mod kind;
mod outbox;
mod role;
mod supervisor;
mod tasks;
mod term;

pub use crate::claim::Gate;
pub use builder::OutboxBuilder;
pub use config::{
    ClaimConfig, Config, DispatchConfig, FailingHead, FailingKey, MetricsConfig, OwnershipConfig, PurgeConfig,
    RetryConfig, SettleConfig, ShutdownConfig, WakeUpConfig,
};
pub use outbox::Outbox;
pub(crate) use outbox::Shared;
pub use role::Role;

/// The builder of [`Outbox::single_node`].
pub type SingleNode = OutboxBuilder<kind::SingleNode>;
/// The builder of [`Outbox::multi_node`].
pub type MultiNode = OutboxBuilder<kind::MultiNode>;
/// The builder of [`Outbox::partitioned`].
pub type Partitioned = OutboxBuilder<kind::Partitioned>;
/// The builder of [`Outbox::ordered`].
pub type Ordered = OutboxBuilder<kind::Ordered>;
/// The builder of [`Outbox::writer_only`].
pub type WriterOnly = OutboxBuilder<kind::WriterOnly>;
