//! The shape of a message: its target, its key, its headers, its body.

mod cloud_events;
mod format;
mod headers;
mod template;

pub use format::Format;
pub(crate) use format::Outline;
pub(crate) use headers::{HeaderRules, header_of};
pub(crate) use template::Template;
