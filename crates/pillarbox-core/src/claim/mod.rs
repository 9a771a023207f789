//! From the table to the queue: when to look, where to begin, how much to take.

mod claimer;
mod gate;
mod horizon;
mod listener;
mod lookout;
mod reader;
mod sweep;

use std::time::Duration;

pub(crate) use claimer::Claimer;
use claimer::condemn;
pub use gate::Gate;
pub(crate) use gate::Seen;
pub(crate) use horizon::Horizon;
pub(crate) use listener::listen;
pub(crate) use lookout::Lookout;
pub(crate) use reader::{Place, Reader};

/// A fetch that takes longer than this has passed over much that it need not pass over again.
const SLOW: Duration = Duration::from_millis(5);
