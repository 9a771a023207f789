//! A web console of [Pillarbox](https://docs.rs/pillarbox) outboxes, as a router of axum.
//!
//! It shows an outbox as it is, without a reload of the page: rate, lag, latency and failures, events of every state, DEAD events,
//! blocked keys, nodes and partitions, routes, settings, findings and the audit. Operators replay, discard, cancel and retry
//! events; each of these is confirmed with the number of events, and recorded.
//!
//! `pillarbox console` and the relay serve it by themselves. A service mounts it behind its own authentication:
//!
//! ```no_run
//! # use pillarbox_core::handle::Delivery;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_memory::MemoryStore;
//! use pillarbox_console::{Access, Console, Role, Source, User};
//!
//! # #[derive(Clone)]
//! # struct Employee { mail: String, is_on_call: bool }
//! # async fn send_receipt(_: Delivery) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::single_node(MemoryStore::new()).handle_all(send_receipt).start().await?;
//! // A layer of the service has put the employee into the request; without one, nothing is shown.
//! let access = Access::decided_by(|request| {
//!     let employee = request.extensions.get::<Employee>()?;
//!     let role = if employee.is_on_call { Role::Operate } else { Role::Read };
//!     Some(User::new(&employee.mail, role))
//! });
//! let console = Console::new(access).source(Source::of_outbox("shop", outbox));
//! let service: axum::Router = axum::Router::new().nest("/outbox", console.router());
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing comes from another host, and no script or style stands in a page. Values of headers, settings and members of payloads
//! that are named like secrets are masked; [`Console::mask_payloads`] masks payloads altogether.

mod actions;
mod app;
mod assets;
mod auth;
mod console;
mod csrf;
mod examine;
mod headers;
mod layout;
mod mask;
mod pages;
mod parts;
mod problem;
mod sample;
mod source;
mod view;

pub use auth::{Access, AccessError, Accounts, Role, User};
pub use console::Console;
pub use examine::{Examination, Examine, Finding};
pub use source::{ConfigurationFile, Setting, Source};
