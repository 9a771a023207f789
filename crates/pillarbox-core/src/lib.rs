//! The contract of [Pillarbox](https://docs.rs/pillarbox): events, rows, handlers, and the ports to databases, brokers and time.
//! Stores, adapters and publishers depend on it; the engine that delivers is `pillarbox-engine`.
//!
//! It knows no SQL, no broker and no HTTP. No module imports one that stands above it in this list:
//!
//! | Module | |
//! |---|---|
//! | [`context`] | what the writer had around it, in headers |
//! | [`handle`] | the user's code: what it is given, what it may answer |
//! | [`inbox`] | which messages a consumer has received, in the user's transaction |
//! | [`write`](mod@write) | events become rows, on the user's transaction |
//! | [`retry`] | when to try again |
//! | [`publisher`] | the port to a broker |
//! | [`store`] | the port to a database |
//! | [`row`] | rows, their states, and the verdicts that change them |
//! | [`ownership`] | nodes, modes, partitions, and what a node's right to a row rests on |
//! | [`event`] | what a service writes |
//! | [`examine`] | what a doctor looks for, and what it finds |
//! | [`clock`], [`error`], `hash`, `lock`, `planted_bug`, `simulated`, `throttle` | ground that any module may import: time and randomness, what can go wrong, the hooks of the simulation |

pub mod clock;
pub mod context;
pub mod error;
pub mod event;
pub mod examine;
pub mod handle;
#[doc(hidden)]
pub mod hash;
pub mod inbox;
#[doc(hidden)]
pub mod lock;
pub mod ownership;
#[doc(hidden)]
pub mod planted_bug;
pub mod publisher;
pub mod retry;
pub mod row;
#[cfg(simulated)]
pub mod simulated;
pub mod store;
#[doc(hidden)]
pub mod throttle;
pub mod write;
