//! Health, status and metrics of a [Pillarbox](https://docs.rs/pillarbox) outbox, as a router of axum for the service it runs in.
//!
//! | Path | |
//! |---|---|
//! | `/health/live` | 503 once the outbox is stuck or has stopped, else 200. For a liveness probe. |
//! | `/health/ready` | 200 while it does its work, else 503 and its problems. For a readiness probe. |
//! | `/status` | JSON: role, mode, health, problems, counts and lag. |
//! | `/metrics` | metrics for Prometheus, if the router is given [`Metrics`]. |
//!
//! **Mount it on a listener that only your own network reaches.** It has no password. It shows no payload, no header, no key, no id of an
//! event and no credentials; it does show names of nodes, the address of the database and how busy the service is. For a
//! listener that others reach, take [`Pages::probes`]: it answers whether the outbox is well and names its problems, but no node, no database and no
//! event.
//!
//! ```no_run
//! # use pillarbox_core::handle::Delivery;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_memory::MemoryStore;
//! use pillarbox_axum::{Metrics, Pages};
//!
//! # async fn send_receipt(_: Delivery) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Before the outbox starts, which makes the handles of its metrics then.
//! let metrics = Metrics::install()?;
//! let outbox = Outbox::single_node(MemoryStore::new()).handle_all(send_receipt).start().await?;
//! let pages = Pages::new(outbox.clone()).metrics(metrics);
//!
//! let public: axum::Router = axum::Router::new().nest("/outbox", pages.probes());
//! let internal: axum::Router = axum::Router::new().nest("/outbox", pages.router());
//! # let _ = (public, internal);
//! # Ok(())
//! # }
//! ```

mod backlog;
mod metrics;
mod pages;
mod paused;
mod status;

pub use metrics::{Metrics, MetricsError};
pub use pages::Pages;
/// For the relay, whose answers no proxy may keep either.
#[doc(hidden)]
pub use pages::fresh;
/// For the relay, whose `/status` shows it too.
#[doc(hidden)]
pub use paused::Paused;
