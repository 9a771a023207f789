//! The handlers of an outbox: how they are registered, which of them takes an event, and what runs around all of them.

mod contexts;
mod fan_out;
mod guarded;
mod interceptors;
mod lane;
mod limits;
mod rate;
mod registration;
mod router;
mod settings;

pub use crate::config::Unroutable;
pub(crate) use contexts::Contexts;
pub(crate) use fan_out::{Accepts, FanOut, Recipient};
pub(crate) use guarded::guarded;
pub(crate) use interceptors::Interceptors;
pub(crate) use lane::{has_type_alone, lane};
pub use limits::HandlerLimit;
pub(crate) use limits::{Limited, LimitedHandlers, Limiter};
pub use rate::{NotARate, Rate};
pub(crate) use registration::check_id;
pub use registration::{Events, Register, Registration, on, on_batch, on_type};
pub use router::DuplicateHandler;
pub(crate) use router::{Registered, Router, Target, UnroutableReason};
pub use settings::HandlerConfig;
