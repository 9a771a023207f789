//! The queues in memory: events on their way to a worker, and the register of the rows that are held.
//!
//! Everything here is a hint. The table is the truth, and all of it may vanish at any moment without losing an event.

mod class_queue;
mod feed;
mod in_flight;
mod intake;
mod keys;
mod lanes;
mod notifier;
mod quarantine;
mod registry;
mod release_queue;
mod reported;
mod shares;
mod unverified;

pub(crate) use feed::Feed;
pub(crate) use in_flight::InFlight;
pub(crate) use intake::{HotPath, Intake};
pub(crate) use keys::{KeyLanes, Refill, Source};
pub(crate) use lanes::{Item, Lanes};
pub(crate) use notifier::Notifier;
pub(crate) use registry::FetchGuard;
use registry::{Registry, Taken};
use release_queue::ReleaseQueue;
pub(crate) use reported::Reported;
pub(crate) use shares::{Charge, Class, Classes, Limits, Shares};
pub(crate) use unverified::Unverified;
