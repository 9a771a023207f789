use std::fmt::Write as _;

use pillarbox_core::store::OrderKey;

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

/// A JSON array of `[seq, partition]`.
pub(crate) fn stamps(rows: &[(i64, u8)]) -> String {
    let pairs: Vec<String> = rows.iter().map(|(seq, partition)| format!("[{seq},{partition}]")).collect();
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
    use super::*;

    #[test]
    fn arrays_of_any_length_are_json() {
        assert_eq!(array([]), "[]");
        assert_eq!(array([1]), "[1]");
        assert_eq!(array([1, -2, i64::MAX]), "[1,-2,9223372036854775807]");
        assert_eq!((stamps(&[]).as_str(), stamps(&[(7, 0), (8, 255)]).as_str()), ("[]", "[[7,0],[8,255]]"));
    }

    #[test]
    fn keys_are_told_apart_whatever_is_in_them() {
        let key = |handler: Option<&str>, key: &str| OrderKey { handler: handler.map(Into::into), key: key.into() };
        assert_eq!(keys(&[]), "[]");
        assert_eq!(keys(&[key(None, "\0\"é"), key(Some("m"), "")]), r#"["0022C3A9","6D:"]"#);
    }
}
