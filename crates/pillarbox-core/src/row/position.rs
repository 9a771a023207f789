use std::fmt;

/// The place at which a broker keeps a delivered event, as the row keeps it in its column `delivered_as`: `orders/3/1042` of Kafka, say.
/// At most [`MAX_BYTES`](Self::MAX_BYTES) of text in one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position(String);

/// A text that cannot be a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPosition {
    /// It has no characters.
    #[error("the position is empty; answer that the event is done instead")]
    Empty,
    /// It has too many bytes.
    #[error("the position has {0} bytes, more than {max}; report a shorter id of the message", max = Position::MAX_BYTES)]
    TooLong(usize),
    /// It has a control character, such as a line break.
    #[error("the position has a control character; leave it out")]
    ControlCharacter,
}

impl Position {
    /// The maximum length: room for the longest topic of Kafka and the longest stream of NATS, with the numbers behind them.
    pub const MAX_BYTES: usize = 300;

    /// Takes a text as a position. One that is too long is refused, not cut: a part of an id identifies nothing.
    ///
    /// # Errors
    /// When the text is empty, longer than [`MAX_BYTES`](Self::MAX_BYTES), or has control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidPosition> {
        let text = text.into();
        if text.is_empty() {
            return Err(InvalidPosition::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(InvalidPosition::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidPosition::ControlCharacter);
        }
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_line_of_bounded_length() {
        let longest = format!("{}/{}/{}", "t".repeat(249), i32::MAX, i64::MAX);
        assert!(longest.len() <= Position::MAX_BYTES);
        for text in ["7", "orders/3/1042", "Grüße/🦀 {\"'\\}", &longest, &"é".repeat(150)] {
            assert_eq!(Position::new(text).map(|position| position.to_string()).as_deref(), Ok(text));
        }
        for (text, problem) in [
            ("", InvalidPosition::Empty),
            (&*"é".repeat(151), InvalidPosition::TooLong(302)),
            ("a\nb", InvalidPosition::ControlCharacter),
            ("a\0", InvalidPosition::ControlCharacter),
            ("\u{85}", InvalidPosition::ControlCharacter),
        ] {
            assert_eq!(Position::new(text), Err(problem), "{text:?}");
        }
        assert_eq!(
            InvalidPosition::TooLong(302).to_string(),
            "the position has 302 bytes, more than 300; report a shorter id of the message"
        );
    }
}
