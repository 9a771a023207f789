use std::any::Any;
use std::fmt::Write as _;

/// Characters of `last_error`.
const MAX_CHARACTERS: usize = 4000;

/// Makes an error's text storable: characters that a database refuses or a terminal obeys are escaped, and what is longer
/// than 4000 characters is cut on a character boundary and ends in `...`.
pub(crate) fn clean_error(text: &str) -> String {
    let mut clean = String::with_capacity(text.len().min(MAX_CHARACTERS));
    let mut escaped = String::new();
    let mut characters = 0;
    // The place at which the text may be cut so that the dots still fit, always in front of a whole escape.
    let mut cut = 0;
    for c in text.chars() {
        escaped.clear();
        if c.is_control() && !matches!(c, '\n' | '\t') {
            // Writing to a String does not fail.
            let _ = write!(escaped, "{}", c.escape_unicode());
        } else {
            escaped.push(c);
        }
        let length = escaped.chars().count();
        if characters + length > MAX_CHARACTERS {
            clean.truncate(cut);
            clean.push_str("...");
            return clean;
        }
        clean.push_str(&escaped);
        characters += length;
        if characters <= MAX_CHARACTERS - 3 {
            cut = clean.len();
        }
    }
    clean
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["", "connection refused", "línea\n\tdos 🦀", &"é".repeat(4000)] {
            assert_eq!(clean_error(text), text);
        }
    }

    #[test]
    fn characters_that_a_database_refuses_are_escaped() {
        assert_eq!(clean_error("a\0b\u{1b}[31m"), "a\\u{0}b\\u{1b}[31m");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let cut = clean_error(&"é".repeat(4001));
        assert_eq!((cut.chars().count(), cut.ends_with("é...")), (4000, true));
        let cut = clean_error(&"\0".repeat(3000));
        assert!(cut.chars().count() <= 4000 && cut.ends_with("\\u{0}..."), "escapes stay whole");
    }
}
