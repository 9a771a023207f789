//! The contract of [Pillarbox](https://docs.rs/pillarbox): events, rows, handlers, and the ports to databases, brokers and time.
//! Stores, adapters and publishers depend on it; the engine that delivers is `pillarbox-engine`.
//!
//! It knows no SQL, no broker and no HTTP. No module imports one that stands above it in this list:
//!
//! | Module | |
//! |---|---|
//! | [`context`] | trace and request context, carried in headers |
//! | [`handle`] | the user's handlers: their input and their outcomes |
//! | [`inbox`] | a consumer's record of received messages, in the user's transaction |
//! | [`write`](mod@write) | inserting events as rows, on the user's transaction |
//! | [`retry`] | the rules and the delays of further attempts |
//! | [`publisher`] | the port to a broker |
//! | [`store`] | the port to a database |
//! | [`row`] | rows, their states, and the verdicts that change them |
//! | [`ownership`] | nodes, modes, partitions, and the fences of a node's right to a row |
//! | [`event`] | the event model |
//! | [`examine`] | the checks and findings of a doctor |
//! | [`clock`], [`error`], `hash`, `lock`, `planted_bug`, `simulated`, `throttle` | ground that any module may import: time and randomness, errors, the hooks of the simulation |

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
