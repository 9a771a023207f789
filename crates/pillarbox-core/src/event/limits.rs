//! The maximum length of each part of an event, and the one check they all go through.
//!
//! The lengths are those of the table's columns. They are checked when the event is built, so that a bad event never
//! reaches SQL and never spoils the caller's transaction.

use super::InvalidEvent;

/// Characters of an event id.
pub const EVENT_ID: usize = 36;
/// Characters of an event type.
pub const EVENT_TYPE: usize = 128;
/// Characters of an aggregate type.
pub const AGGREGATE_TYPE: usize = 64;
/// Characters of an aggregate id.
pub const AGGREGATE_ID: usize = 128;
/// Characters of a tenant id.
pub const TENANT_ID: usize = 64;
/// Characters of an ordering key.
pub const KEY: usize = 255;
/// Characters of a unique key.
pub const UNIQUE_KEY: usize = 255;
/// Characters of a handler's name.
pub const HANDLER_ID: usize = 128;
/// Characters of a payload's content type.
pub const CONTENT_TYPE: usize = 128;
/// Bytes of a payload, inclusive: 1 MiB, counted in UTF-8 for text.
pub const PAYLOAD_BYTES: usize = 1_048_576;
/// Bytes of the payload and the headers of a row that other programs insert, inclusive: 16 MB, below the largest packet that MariaDB and
/// MySQL send by default. A row with more is not read, and its event is given up.
pub const ROW_BYTES: usize = 16_000_000;
/// Bytes of all header names and values together: 64 KiB.
pub const HEADER_BYTES: usize = 65_536;
/// Levels of nesting in a JSON payload, which every database accepts, and `serde_json`, by which typed handlers read.
pub const JSON_DEPTH: usize = 127;

/// Accepts `text` if it is non-empty, at most `max` characters long, and free of NUL, which no database stores in text.
pub fn check_text(field: &'static str, text: &str, max: usize) -> Result<(), InvalidEvent> {
    if text.is_empty() {
        return Err(InvalidEvent::new(field, "is empty", "give it a value, or leave it out where it is optional"));
    }
    // Bytes first: the common case never counts characters.
    if text.len() > max {
        let characters = text.chars().count();
        if characters > max {
            let problem = format!("has {characters} characters, over the limit of {max}");
            return Err(InvalidEvent::new(field, problem, "shorten it"));
        }
    }
    check_no_nul(field, text)
}

/// Accepts `text` if it is free of NUL.
pub(crate) fn check_no_nul(field: &'static str, text: &str) -> Result<(), InvalidEvent> {
    if text.contains('\0') {
        return Err(InvalidEvent::new(field, "contains a NUL character (U+0000)", "remove it: databases refuse it"));
    }
    Ok(())
}
