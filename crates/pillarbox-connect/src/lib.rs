//! Options with which the clients of [Pillarbox](https://docs.rs/pillarbox) reach a server: its address, the credentials, the
//! certificates to trust, the time to wait.
//!
//! The options that publishers and stores have in common stand here once: the rule, and the words in which it is refused.
//! These name the option, the problem and a remedy, and show no part of a URL that could be a secret. Each crate keeps its own
//! part: the names of its schemes, the meaning of a path, the making of its client. [`server_options!`] shows how they go together.
//!
//! Messages that are too many for one call are cut into [`batches`].

mod address;
mod batch;
mod host;
mod login;
mod options;
mod parameter;
mod plaintext;

pub mod max_body;
pub mod timeout;

#[cfg(feature = "tls")]
pub mod tls;

pub use address::{Address, Form, Scheme};
pub use batch::batches;
pub use host::Host;
pub use login::Login;
pub use parameter::unknown_parameter;
pub use plaintext::{needs_tls, no_tls, refuse_plaintext};

// For what `server_options!` expands to.
#[doc(hidden)]
pub use pillarbox_core;
#[doc(hidden)]
pub use serde;
