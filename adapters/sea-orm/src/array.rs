//! Arrays of PostgreSQL in its text form, which the store's own casts read: SeaORM panics at a NULL within an array.

use std::fmt::Write as _;

/// The text form of an array of numbers.
pub(crate) fn of_ints(values: &[Option<i64>]) -> String {
    array(values, |text, value| {
        // Writing to a `String` does not fail.
        let _ = write!(text, "{value}");
    })
}

/// The text form of an array of texts: each in quotes, in which quotes and backslashes are escaped.
pub(crate) fn of_texts(values: &[Option<&str>]) -> String {
    array(values, |text, value| {
        text.push('"');
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
    })
}

/// The text form of an array of bytes: each in hexadecimal digits.
pub(crate) fn of_bytes(values: &[Option<&[u8]>]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    array(values, |text, value| {
        text.reserve(2 * value.len() + 5);
        text.push_str("\"\\\\x");
        for byte in *value {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        text.push('"');
    })
}

fn array<T>(values: &[Option<T>], mut write: impl FnMut(&mut String, &T)) -> String {
    let mut text = String::from("{");
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        match value {
            Some(value) => write(&mut text, value),
            None => text.push_str("NULL"),
        }
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_as_postgresql_reads_them() {
        assert_eq!(of_ints(&[Some(-7), None]), "{-7,NULL}");
        assert_eq!(of_ints(&[]), "{}");
        assert_eq!(
            of_texts(&[Some(""), Some("NULL"), Some(r#"a "b" \ {,}"#), None]),
            r#"{"","NULL","a \"b\" \\ {,}",NULL}"#
        );
        assert_eq!(of_bytes(&[Some(&[0, 255]), Some(&[]), None]), r#"{"\\x00ff","\\x",NULL}"#);
    }
}
