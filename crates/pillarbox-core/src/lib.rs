//! The engine of [Pillarbox](https://docs.rs/pillarbox): events, ports, dispatch, settling, the in-memory store.
//!
//! It knows no SQL, no broker and no HTTP. The folders are the flow of an event, in reading order:
//!
//! ```text
//! event ─▶ write ─▶ queue │ claim ─▶ dispatch ─▶ handle ─▶ settle
//! ```
//!
//! `ownership` says who may deliver, `retry` when again, `run` starts and stops it all; [`store`], [`publisher`] and [`clock`] are the
//! ports to the outside.

pub mod clock;
pub mod context;
pub mod error;
pub mod event;
pub mod handle;
pub mod maintain;
pub mod observe;
pub mod ownership;
pub mod publisher;
pub mod retry;
pub mod run;
pub mod settle;
#[cfg(simulated)]
pub mod simulated;
pub mod store;
pub mod stores;
pub mod write;

mod claim;
mod dispatch;
mod hash;
mod plants;
mod queue;
