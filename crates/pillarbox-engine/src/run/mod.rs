//! Starting, running and stopping an outbox. The only place that spawns tasks.

mod blocking;
mod builder;
mod drain;
mod error;
pub mod kind;
mod launch;
mod outbox;
mod parts;
mod shared;
mod start_unless;
mod supervisor;
mod tasks;
mod term;
mod vital;

#[doc(hidden)]
pub use crate::config::notation;
pub use crate::config::{
    ClaimConfig, Config, DispatchConfig, FailingHead, FailingKey, MetricsConfig, Mode, OwnershipConfig, PurgeConfig,
    RetryConfig, SettleConfig, ShutdownConfig, WakeUpConfig, applies, why_ignored,
};
pub use crate::observe::Role;
pub use crate::type_pause::TypePause;
pub use builder::OutboxBuilder;
pub use drain::Drained;
pub use error::StartError;
pub use outbox::Outbox;
pub(crate) use shared::Shared;
pub use start_unless::start_unless;

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
