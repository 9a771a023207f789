//! Which events a route takes.

mod pattern;
mod selector;

pub use pattern::Pattern;
pub(crate) use selector::Selector;
