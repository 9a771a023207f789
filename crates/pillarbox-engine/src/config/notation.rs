//! Values as people write them in files: modules for `#[serde(with = …)]`.

pub mod bytes;
mod duration;

pub use duration::{if_given, is_duration, never_if_given, or_never, span};
pub(super) use duration::{parse, written};
