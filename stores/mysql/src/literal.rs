use std::fmt::{self, Write as _};

use pillarbox_core::store::RowId;

/// A value in the text of a statement.
///
/// The engine sends text with its values in it, so that a call is one or two round trips and needs no prepared statement.
/// Nothing a user wrote enters as it is: a literal is made of decimal or hexadecimal digits, or of statements that stand
/// in `sql/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal(String);

impl Literal {
    pub(crate) fn int(value: impl Into<i64>) -> Self {
        Self(value.into().to_string())
    }

    /// A number of rows, for LIMIT.
    pub(crate) fn count(value: usize) -> Self {
        Self::int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// A list for `IN`. An empty one would be an error of syntax, so it is a list that nothing is in.
    pub(crate) fn ints(values: &[i64]) -> Self {
        let mut list = String::with_capacity(values.len() * 8);
        for value in values {
            let separator = if list.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(list, "{separator}{value}");
        }
        Self(if list.is_empty() { "NULL".to_owned() } else { list })
    }

    pub(crate) fn text(value: &str) -> Self {
        Self(format!("_utf8mb4 {}", Self::bytes(value)))
    }

    /// Bytes that are compared as such with a column of bytes. A column of text has to be cast: MariaDB compares by the column's collation,
    /// to which a text and the same with a space behind it are one.
    pub(crate) fn bytes(value: &str) -> Self {
        Self::hexadecimal(value.as_bytes())
    }

    pub(crate) fn hexadecimal(bytes: &[u8]) -> Self {
        let mut hex = String::with_capacity(bytes.len() * 2 + 3);
        hex.push_str("x'");
        for byte in bytes {
            let _ = write!(hex, "{byte:02x}");
        }
        hex.push('\'');
        Self(hex)
    }

    /// A list of byte strings for `IN`.
    pub(crate) fn byte_strings<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::list(values.into_iter().map(|value| Self::hexadecimal(value).0), "NULL")
    }

    /// A list of such texts for `IN`.
    pub(crate) fn byte_list(values: &[&str]) -> Self {
        Self::list(values.iter().map(|value| Self::bytes(value).0), "NULL")
    }

    /// A list of texts for `IN`.
    pub(crate) fn texts(values: &[&str]) -> Self {
        Self::list(values.iter().map(|value| Self::text(value).0), "NULL")
    }

    /// A list of pairs of numbers for `IN`.
    pub(crate) fn tuples(pairs: impl IntoIterator<Item = (i64, i64)>) -> Self {
        Self::list(pairs.into_iter().map(|(a, b)| format!("({a},{b})")), "(NULL,NULL)")
    }

    /// A list, or `nothing` if it has no items.
    fn list(items: impl Iterator<Item = String>, nothing: &str) -> Self {
        let list: Vec<String> = items.collect();
        Self(if list.is_empty() { nothing.to_owned() } else { list.join(",") })
    }

    /// Pairs of such texts for `IN`; there is at least one.
    pub(crate) fn byte_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pair = |(a, b)| format!("({},{})", Self::bytes(a), Self::bytes(b));
        Self(pairs.into_iter().map(pair).collect::<Vec<_>>().join(","))
    }

    /// Place, partition and event of rows in JSON, for a table of them.
    pub(crate) fn partitions<'a>(partitions: impl IntoIterator<Item = &'a (RowId, u8)>) -> Self {
        let stamp = |(row, partition): &(RowId, u8)| {
            let event = Self::bytes(row.event_id.as_str()).0;
            let hex = event.trim_start_matches("x'").trim_end_matches('\'');
            format!("[{},{partition},\"{hex}\"]", row.seq)
        };
        Self(partitions.into_iter().map(stamp).collect::<Vec<_>>().join(","))
    }

    pub(crate) fn optional_text(value: Option<&str>) -> Self {
        value.map_or_else(|| Self("NULL".to_owned()), Self::text)
    }

    /// A part of a statement that is already filled in.
    pub(crate) fn clause(filled: String) -> Self {
        Self(filled)
    }

    /// No clause.
    pub(crate) fn nothing() -> Self {
        Self(String::new())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Puts values in the place of their names in braces.
pub(crate) fn fill(statement: &str, values: &[(&str, &Literal)]) -> String {
    let mut filled = String::with_capacity(statement.len() + 64);
    let mut rest = statement;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let value = values.iter().find(|(known, _)| *known == name);
        debug_assert!(value.is_some(), "`{name}` has no value in: {statement}");
        if let Some((_, value)) = value {
            filled.push_str(&value.0);
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    #[test]
    fn text_is_hexadecimal_whatever_it_says() {
        assert_eq!(Literal::text("").to_string(), "_utf8mb4 x''");
        assert_eq!(Literal::text("'; é\0").to_string(), "_utf8mb4 x'273b20c3a900'");
        assert_eq!(Literal::optional_text(None).to_string(), "NULL");
        assert_eq!(Literal::byte_list(&["a", "a "]).to_string(), "x'61',x'6120'");
        assert_eq!(Literal::byte_strings([&b"a"[..], &[255]]).to_string(), "x'61',x'ff'");
    }

    #[test]
    fn an_empty_list_is_one_that_nothing_is_in() {
        assert_eq!(Literal::ints(&[]).to_string(), "NULL");
        assert_eq!(Literal::byte_list(&[]).to_string(), "NULL");
        assert_eq!(Literal::byte_strings([]).to_string(), "NULL");
        assert_eq!(Literal::ints(&[-1, 2]).to_string(), "-1,2");
    }

    #[test]
    fn stamps_are_rows_of_a_json_array() {
        let row = |seq, id| RowId { seq, event_id: EventId::from_stored(id), handler: None };
        let partitions = [(row(7, "a\""), 0), (row(8, ""), 255)];
        assert_eq!(Literal::partitions(&partitions).to_string(), r#"[7,0,"6122"],[8,255,""]"#);
    }

    #[test]
    fn pairs_of_texts_are_rows() {
        assert_eq!(Literal::byte_pairs([("a", "b"), ("", "'")]).to_string(), "(x'61',x'62'),(x'',x'27')");
    }

    #[test]
    fn values_are_put_in_once() {
        let (a, b) = (Literal::clause("{b}".to_owned()), Literal::int(2));
        assert_eq!(fill("x {a} y {b}", &[("a", &a), ("b", &b)]), "x {b} y 2");
    }
}
