//! The selection of the events that a route takes.

mod pattern;
mod selector;

pub use pattern::Pattern;
pub(crate) use selector::{Predicate, Selector};
