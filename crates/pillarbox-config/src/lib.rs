//! Settings of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox, from a file and the environment, and one
//! call from them to a running outbox.
//!
//! ```no_run
//! # use pillarbox_core::handle::Delivery;
//! # async fn send_receipt(_delivery: Delivery) {}
//! # async fn example() -> Result<(), pillarbox_config::Error> {
//! let outbox = pillarbox_config::load("pillarbox.toml")?
//!     .outbox()
//!     .handle_type(("order", "order.placed"), send_receipt)
//!     .start()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! ```toml
//! mode = "multi_node"
//!
//! [store]
//! url_file = "/run/secrets/outbox-url"    # or PILLARBOX_STORE__URL
//!
//! [dispatch]
//! workers = 16
//! ```
//!
//! The environment wins over the file, and the file over the defaults. `dispatch.workers` is the variable
//! `PILLARBOX_DISPATCH__WORKERS`: the prefix, and two underscores for the dot. A key that does not exist, or that the mode
//! or the database would ignore, is refused, wherever it stands. `docs/configuration.md` lists all keys.
//!
//! # From here to a running outbox
//!
//! [`Settings::outbox`] gives a [`Setup`]: handlers, hooks and everything else that is code is added to it, the same for
//! every mode, since which mode it will be is known only when the program runs. What the settings say can be changed
//! before, by the fields of [`Settings`], most of which are sections of the engine's [`Config`](pillarbox_engine::run::Config), and the store can be handed in, so every part can be overridden.

mod check;
mod connect;
mod error;
mod foreign;
mod handlers;
mod keys;
mod load;
mod modes;
mod origin;
mod read;
mod settings;
mod setup;
mod value;

pub use error::Error;
#[doc(hidden)]
pub use error::lines;
#[doc(hidden)]
pub use foreign::meant_by;
pub use load::Loader;
pub use origin::Origin;
pub use pillarbox_engine::handlers::Unroutable;
pub use pillarbox_engine::run::{FailingHead, FailingKey, Mode};
pub use settings::{HandlerRetrySettings, HandlerSettings, InForce, RetrySettings, Settings, StoreSettings};
pub use setup::Setup;
pub use value::{DatabaseUrl, RetryPolicyKind, Synchronous};

use std::path::PathBuf;

/// True if a variable that begins with `PILLARBOX_` is for the program `pillarbox` or the tests, or one that Kubernetes sets.
#[doc(hidden)]
#[must_use]
pub fn is_variable_of_others(name: &str) -> bool {
    name.strip_prefix(read::PREFIX).is_none_or(|name| read::is_of_others(read::PREFIX, name))
}

/// Reads settings from a TOML file and from the variables that begin with `PILLARBOX_`. For other sources see [`Loader`].
///
/// # Errors
/// When the file cannot be read, or a setting in it or in the environment cannot be used: which, where, and what to do.
pub fn load(file: impl Into<PathBuf>) -> Result<Settings, Error> {
    Loader::new().file(file).environment().load()
}
