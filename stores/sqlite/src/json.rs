use std::fmt::{self, Write as _};

use pillarbox_core::event::EventId;
use pillarbox_core::ownership::Epochs;
use pillarbox_core::store::{OrderKey, RowId};

/// A JSON array of integers, for `json_each`, in the place of an array to bind.
pub(crate) fn array(numbers: impl IntoIterator<Item = i64>) -> String {
    list(numbers, |text, number| write!(text, "{number}"))
}

/// A JSON array of `[seq, partition, event_id]`.
pub(crate) fn partitions(rows: &[(RowId, u8)]) -> String {
    list(rows, |text, (row, partition)| {
        write!(text, "[{},{partition},", row.seq)?;
        quote(text, row.event_id.as_str())?;
        text.write_char(']')
    })
}

/// A JSON array of `[seq, event_id]`.
pub(crate) fn places<'a>(rows: impl IntoIterator<Item = &'a RowId>) -> String {
    list(rows, |text, row| {
        write!(text, "[{},", row.seq)?;
        quote(text, row.event_id.as_str())?;
        text.write_char(']')
    })
}

/// A JSON array of `[seq, position]`.
pub(crate) fn positions<'a>(rows: impl IntoIterator<Item = (i64, &'a str)>) -> String {
    list(rows, |text, (seq, position)| {
        write!(text, "[{seq},")?;
        quote(text, position)?;
        text.write_char(']')
    })
}

/// A JSON array of the event ids of rows.
pub(crate) fn events<'a>(rows: impl IntoIterator<Item = &'a RowId>) -> String {
    event_ids(rows.into_iter().map(|row| &row.event_id))
}

/// A JSON array of event ids.
pub(crate) fn event_ids<'a>(ids: impl IntoIterator<Item = &'a EventId>) -> String {
    list(ids, |text, id| quote(text, id.as_str()))
}

/// A JSON array of `[partition, epoch]`.
pub(crate) fn epochs(epochs: &Epochs) -> String {
    list(epochs.iter(), |text, (partition, epoch)| write!(text, "[{partition},{epoch}]"))
}

/// A JSON array of keys as statements compare them: `"K"`, or `"H:K"` with a handler, both in hexadecimal.
pub(crate) fn keys(keys: &[OrderKey]) -> String {
    list(keys, |text, OrderKey { handler, key }| match handler {
        None => write!(text, "\"{}\"", hex(key)),
        Some(handler) => write!(text, "\"{}:{}\"", hex(handler), hex(key)),
    })
}

/// A JSON array of texts, in hexadecimal as well.
pub(crate) fn texts(texts: &[Box<str>]) -> String {
    list(texts, |list, text| write!(list, "\"{}\"", hex(text)))
}

fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T) -> fmt::Result) -> String {
    let mut text = String::from("[");
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        // Writing to a string cannot fail.
        let _ = write(&mut text, item);
    }
    text.push(']');
    text
}

/// Adds a JSON string.
fn quote(text: &mut String, value: &str) -> fmt::Result {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            control if control < ' ' => write!(text, "\\u{:04x}", u32::from(control))?,
            other => text.push(other),
        }
    }
    text.write_char('"')
}

/// The hexadecimal text of the bytes, as SQLite's function `hex` writes it.
fn hex(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len() * 2), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02X}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    #[test]
    fn arrays_of_any_length_are_json() {
        assert_eq!(array([]), "[]");
        assert_eq!(array([1]), "[1]");
        assert_eq!(array([1, -2, i64::MAX]), "[1,-2,9223372036854775807]");
        let row = |seq, id| RowId { seq, event_id: EventId::from_stored(id), handler: None };
        let rows = [row(7, "é"), row(8, "\"\\\n")];
        assert_eq!(events(&rows), r#"["é","\"\\\u000a"]"#);
        assert_eq!((places([]).as_str(), places(&rows[..1]).as_str()), ("[]", r#"[[7,"é"]]"#));
        assert_eq!(positions([(7, "s/1"), (8, "\"é")]), r#"[[7,"s/1"],[8,"\"é"]]"#);
        let [first, second] = rows;
        assert_eq!(partitions(&[]), "[]");
        assert_eq!(partitions(&[(first, 0), (second, 255)]), r#"[[7,0,"é"],[8,255,"\"\\\u000a"]]"#);
    }

    #[test]
    fn keys_are_told_apart_whatever_is_in_them() {
        let key = |handler: Option<&str>, key: &str| OrderKey { handler: handler.map(Into::into), key: key.into() };
        assert_eq!(keys(&[]), "[]");
        assert_eq!(keys(&[key(None, "\0\"é"), key(Some("m"), "")]), r#"["0022C3A9","6D:"]"#);
    }
}
