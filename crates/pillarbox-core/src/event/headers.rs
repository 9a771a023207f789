use std::collections::BTreeMap;
use std::collections::btree_map;

use super::{InvalidEvent, limits};

/// The bytes of memory that a header takes beside its name and value: two `String`s in a map, and the overhead of their allocations.
const OVERHEAD: usize = 96;

/// The string map that travels with an event: trace context, correlation ids, routing hints.
///
/// Names are unique and kept in alphabetical order. Neither names nor values may be absent, empty names and NUL
/// characters are refused when the event is built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// No headers.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The value of `name`, if it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets `name` to `value`, replacing what was there.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Takes `name` out; its value, if it was set.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// The id of the trace that the event was written in: 32 hexadecimal digits, from the header `traceparent` of
    /// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header). `None` without it, or if it has not the
    /// shape of one.
    ///
    /// ```
    /// let mut headers = pillarbox_core::event::Headers::new();
    /// headers.insert("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    /// assert_eq!(headers.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    /// ```
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        let mut parts = self.get("traceparent")?.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let has_shape = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        (has_shape && trace.bytes().any(|digit| digit != b'0')).then_some(trace)
    }

    /// True if there are no headers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of headers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The memory that they take, about: each is two texts and its part of a map, which is far more than the bytes of a short one.
    pub(crate) fn memory(&self) -> usize {
        self.bytes() + self.0.len() * OVERHEAD
    }

    /// The bytes of all names and values.
    fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// The JSON object kept in the table's `headers` column; `None` when there are no headers.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        // A map of strings always serialises.
        serde_json::to_string(&self.0).ok()
    }

    /// Reads the `headers` column.
    ///
    /// # Errors
    /// When the text is not a JSON object whose values are all strings.
    pub(crate) fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    pub(crate) fn check(&self) -> Result<(), InvalidEvent> {
        for (name, value) in &self.0 {
            if name.is_empty() {
                return Err(InvalidEvent::new("headers", "has an empty name", "give every header a name"));
            }
            limits::check_no_nul("headers", name)?;
            limits::check_no_nul("headers", value)?;
        }
        let bytes = self.bytes();
        if bytes > limits::HEADER_BYTES {
            let problem = format!("take {bytes} bytes, over the limit of {}", limits::HEADER_BYTES);
            return Err(InvalidEvent::new("headers", problem, "move the data into the payload"));
        }
        Ok(())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<N: Into<String>, V: Into<String>> Extend<(N, V)> for Headers {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, pairs: I) {
        self.0.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a str, &'a str);
    type IntoIter = std::iter::Map<btree_map::Iter<'a, String, String>, fn((&'a String, &'a String)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl IntoIterator for Headers {
    type Item = (String, String);
    type IntoIter = btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
