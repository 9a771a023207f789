//! The queues in memory: events on their way to a worker, and the register of the rows in memory.
//!
//! Everything here is a hint. The table is the truth, and all of it may vanish at any moment without losing an event.

mod class;
mod dispatch_queue;
mod fair_shares;
mod in_flight;
mod intake;
mod keyed_queue;
mod notifier;
mod pending_verdicts;
mod quarantine;
mod ready_queue;
mod registry;
mod release_queue;
mod reported;
mod suspects;
mod unverified;
mod work_queue;

pub(crate) use class::{Class, Classes};
pub(crate) use fair_shares::{Charge, FairShares, Limits};
pub(crate) use in_flight::InFlight;
pub(crate) use intake::{HotPath, Intake};
pub(crate) use keyed_queue::{KeyedQueue, Refill, Source};
pub(crate) use notifier::Notifier;
use pending_verdicts::PendingVerdicts;
pub(crate) use ready_queue::{Item, Pushed, ReadyQueue};
pub(crate) use registry::FetchGuard;
use registry::{HotTake, Registry};
pub(crate) use release_queue::MAX_RELEASED_AT_ONCE;
use release_queue::ReleaseQueue;
pub(crate) use reported::Reported;
pub(crate) use suspects::Suspects;
pub(crate) use unverified::Unverified;
use work_queue::MAX_PASSED_OVER;
pub(crate) use work_queue::{Dropped, WorkQueue};
