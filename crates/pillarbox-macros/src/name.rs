//! Names that end up in the table: written out as strings, never derived from Rust identifiers, and checked here.

use syn::parse::ParseStream;
use syn::{Error, LitStr, Result};

/// A kind of name, as errors call it, and the number of characters that its column holds.
pub(crate) struct Kind {
    what: &'static str,
    max: usize,
}

pub(crate) const EVENT: Kind = Kind { what: "an event name", max: 128 };
pub(crate) const AGGREGATE: Kind = Kind { what: "an aggregate name", max: 64 };
pub(crate) const CONTENT_TYPE: Kind = Kind { what: "a content type", max: 128 };
pub(crate) const HANDLER: Kind = Kind { what: "a handler's name", max: 128 };
/// All headers together have a limit in bytes, which is checked when an event is built.
pub(crate) const HEADER: Kind = Kind { what: "a header name", max: usize::MAX };

impl Kind {
    /// Reads a name, which is written out as a string.
    pub(crate) fn read(&self, input: ParseStream<'_>) -> Result<LitStr> {
        let Self { what, max } = self;
        if !input.peek(LitStr) {
            return Err(input.error(format!("{what} is a string, written out so that it stays the same for ever")));
        }
        let name: LitStr = input.parse()?;
        let text = name.value();
        let characters = text.chars().count();
        let problem = if text.is_empty() {
            format!("{what} cannot be empty")
        } else if characters > *max {
            format!("{what} has at most {max} characters, this one has {characters}")
        } else if text.contains('\0') {
            format!("{what} cannot contain a NUL character: databases refuse it")
        } else {
            return Ok(name);
        };
        Err(Error::new(name.span(), problem))
    }
}
