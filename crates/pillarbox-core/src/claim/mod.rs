//! From the table to the queue: when to look, where to begin, how much to take.

mod claimer;
mod gate;
mod horizon;
mod listener;
mod lookout;
mod reader;
mod sweep;

pub(crate) use claimer::Claimer;
use claimer::condemn;
pub use gate::Gate;
pub(crate) use gate::Seen;
use horizon::Horizon;
pub(crate) use listener::listen;
pub(crate) use lookout::Lookout;
pub(crate) use reader::{Place, Reader};
