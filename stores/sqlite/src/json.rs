use std::fmt::Write as _;

use pillarbox_core::ownership::Epochs;
use pillarbox_core::store::{OrderKey, RowId};

/// A JSON array of integers: what `json_each` takes where other databases have an array to bind.
pub(crate) fn array(numbers: impl IntoIterator<Item = i64>) -> String {
    let mut text = String::from("[");
    for number in numbers {
        if text.len() > 1 {
            text.push(',');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}");
    }
    text.push(']');
    text
}

/// A JSON array of `[seq, partition, event_id]`.
pub(crate) fn partitions(rows: &[(RowId, u8)]) -> String {
    list(rows, |text, (row, partition)| {
        let _ = write!(text, "[{},{partition},", row.seq);
        quote(text, row.event_id.as_str());
        text.push(']');
    })
}

/// A JSON array of `[seq, event_id]`.
pub(crate) fn places<'a>(rows: impl IntoIterator<Item = &'a RowId>) -> String {
    list(rows, |text, row| {
        let _ = write!(text, "[{},", row.seq);
        quote(text, row.event_id.as_str());
        text.push(']');
    })
}

/// A JSON array of event ids.
pub(crate) fn events<'a>(rows: impl IntoIterator<Item = &'a RowId>) -> String {
    list(rows, |text, row| quote(text, row.event_id.as_str()))
}

fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) -> String {
    let mut text = String::from("[");
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        write(&mut text, item);
    }
    text.push(']');
    text
}

/// Adds a JSON string.
fn quote(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

/// A JSON array of `[partition, epoch]`.
pub(crate) fn epochs(epochs: &Epochs) -> String {
    let pairs: Vec<String> = epochs.iter().map(|(partition, epoch)| format!("[{partition},{epoch}]")).collect();
    format!("[{}]", pairs.join(","))
}

/// A JSON array of keys as statements compare them: `"K"`, or `"H:K"` with a handler, both in hexadecimal.
pub(crate) fn keys(keys: &[OrderKey]) -> String {
    let texts: Vec<String> = keys
        .iter()
        .map(|OrderKey { handler, key }| match handler {
            None => format!("\"{}\"", hex(key)),
            Some(handler) => format!("\"{}:{}\"", hex(handler), hex(key)),
        })
        .collect();
    format!("[{}]", texts.join(","))
}

/// A JSON array of texts, in hexadecimal as well.
pub(crate) fn texts(texts: &[Box<str>]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("\"{}\"", hex(text))).collect();
    format!("[{}]", texts.join(","))
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
