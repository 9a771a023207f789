/// The beginning of a statement of another session, which ends before the first value or comment in it: those are private to its
/// program.
#[must_use]
pub fn beginning(query: &str) -> String {
    const CHARACTERS: usize = 80;
    let mut before = ' ';
    let is_value = |c: char| {
        let starts_number = c.is_ascii_digit() && !before.is_alphanumeric() && before != '_';
        before = c;
        c == '\'' || c == '$' || starts_number
    };
    let end = query.find(is_value).unwrap_or(query.len());
    let end = ["--", "/*", "#"].iter().filter_map(|comment| query.find(comment)).fold(end, usize::min);
    let words: Vec<&str> = query[..end].split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if end < query.len() => text + " …",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_shown_up_to_its_first_value() {
        for (query, shown) in [
            ("INSERT INTO orders_2 (id, card)\n  VALUES ('o-1', 4711)", "INSERT INTO orders_2 (id, card) VALUES ( …"),
            ("UPDATE t SET a = 17", "UPDATE t SET a = …"),
            ("DELETE FROM t WHERE a = $1", "DELETE FROM t WHERE a = …"),
            ("SELECT a /* of o-1 */ FROM t", "SELECT a …"),
            ("SELECT a -- of o-1", "SELECT a …"),
            ("COMMIT", "COMMIT"),
            ("", ""),
        ] {
            assert_eq!(beginning(query), shown);
        }
        assert_eq!(beginning(&"é".repeat(100)).chars().count(), 81);
    }
}
