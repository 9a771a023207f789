//! From the table to the queue: when to look, where to begin, how much to take.

mod claimer;
mod listener;
mod lookout;
mod sweep;

pub(crate) use claimer::Claimer;
pub(crate) use listener::listen;
pub(crate) use lookout::Lookout;
