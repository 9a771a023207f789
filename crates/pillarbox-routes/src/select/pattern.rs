use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Matches whole texts: `*` stands for any characters, also none and also dots; everything else for itself.
///
/// ```
/// use pillarbox_routes::Pattern;
///
/// let orders = Pattern::new("order.*");
/// assert!(orders.matches("order.placed") && orders.matches("order.item.added"));
/// assert!(!orders.matches("order") && !orders.matches("reorder.placed"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// A pattern; every text is one.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// True if all of `text` matches the pattern.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return *self.0 == *text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let mut parts = rest.split('*').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return text.ends_with(part);
            }
            // The first place is as good as any: what follows has the more to choose from.
            let Some(at) = text.find(part) else { return false };
            text = &text[at + part.len()..];
        }
        true
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pattern for texts in small letters.
    pub(crate) fn in_small_letters(&self) -> Self {
        Self(self.0.to_ascii_lowercase().into())
    }

    /// True if it matches every text that `other` matches. A star of the other stands for any text, so that only a star of this
    /// takes it: as if it were a character that nothing else is like.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }

    /// True if it stands for every text.
    pub(crate) fn is_any(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte == b'*')
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl FromStr for Pattern {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything_and_the_rest_for_itself() {
        let table = [
            ("order.placed", "order.placed", true),
            ("order.placed", "order.placed2", false),
            ("order?placed", "order.placed", false),
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("order.*", "order.", true),
            ("*.placed", "order.placed", true),
            ("*.placed", "order.placed.late", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a**a", "aa", true),
            ("*é*", "café au lait", true),
            ("ab*ba", "aba", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_pattern_covers_another_that_matches_nothing_more() {
        let table = [
            ("order.*", "order.placed", true),
            ("order.*", "order.item.*", true),
            ("order.*", "order.*", true),
            ("order.*", "order.*.late", true),
            ("order.*", "*.placed", false),
            ("order.*", "order*", false),
            ("order.placed", "order.*", false),
            ("*", "*.placed", true),
            ("**", "*", true),
            ("*", "**", true),
            ("a*c", "a*b*c", true),
            ("a*b*c", "a*c", false),
            ("a", "b", false),
        ];
        for (pattern, other, expected) in table {
            assert_eq!(Pattern::new(pattern).covers(&Pattern::new(other)), expected, "{pattern} and {other}");
        }
    }
}
