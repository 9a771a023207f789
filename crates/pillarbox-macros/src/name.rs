//! Names that end up in the table: written out as strings, never derived from Rust identifiers, and checked here.

use syn::parse::ParseStream;
use syn::{Error, LitStr, Result};

/// Characters of an event type: the width of its column.
const EVENT_TYPE: usize = 128;
/// Characters of an aggregate type: the width of its column.
const AGGREGATE_TYPE: usize = 64;
/// Characters of a content type: the width of its column.
const CONTENT_TYPE: usize = 128;
/// Characters of a handler's name: the width of its column.
const HANDLER: usize = 128;
/// Characters of a header's name. All headers together have a limit in bytes, which is checked when an event is built.
const HEADER: usize = usize::MAX;

/// Reads the value of `name`.
pub(crate) fn event(input: ParseStream<'_>) -> Result<LitStr> {
    read(input, "an event name", EVENT_TYPE)
}

/// Reads the value of `aggregate`.
pub(crate) fn aggregate(input: ParseStream<'_>) -> Result<LitStr> {
    read(input, "an aggregate name", AGGREGATE_TYPE)
}

/// Reads the value of `content_type`.
pub(crate) fn content_type(input: ParseStream<'_>) -> Result<LitStr> {
    read(input, "a content type", CONTENT_TYPE)
}

/// Reads the name of a handler.
pub(crate) fn handler(input: ParseStream<'_>) -> Result<LitStr> {
    read(input, "a handler's name", HANDLER)
}

/// Reads the name of a header.
pub(crate) fn header(input: ParseStream<'_>) -> Result<LitStr> {
    read(input, "a header name", HEADER)
}

fn read(input: ParseStream<'_>, what: &str, max: usize) -> Result<LitStr> {
    if !input.peek(LitStr) {
        return Err(input.error(format!("{what} is a string, written out so that it stays the same for ever")));
    }
    let name: LitStr = input.parse()?;
    let text = name.value();
    let characters = text.chars().count();
    let problem = if text.is_empty() {
        format!("{what} cannot be empty")
    } else if characters > max {
        format!("{what} has at most {max} characters, this one has {characters}")
    } else if text.contains('\0') {
        format!("{what} cannot contain a NUL character: databases refuse it")
    } else {
        return Ok(name);
    };
    Err(Error::new(name.span(), problem))
}
