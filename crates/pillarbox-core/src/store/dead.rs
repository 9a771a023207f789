use super::Attributes;
use super::attributes::attribute_methods;
use crate::clock::Timestamp;

/// Selects the DEAD events that match every field that is set.
///
/// ```
/// use pillarbox_core::store::DeadFilter;
///
/// let filter = DeadFilter::new().event_type("order.placed").tenant("acme").error_contains("timeout");
/// assert_eq!(filter.attributes.tenant_id.as_deref(), Some("acme"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// With these attributes.
    pub attributes: Attributes,
    /// Given up at this time or later. A row without an end, as another program may write it, counts from its creation.
    pub since: Option<Timestamp>,
    /// Given up before this time, in the same way.
    pub before: Option<Timestamp>,
    /// With this text in the error. The text is literal and its case counts.
    pub error: Option<String>,
}

attribute_methods!(DeadFilter);

impl DeadFilter {
    /// All DEAD events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those that were given up at this time or later, by the database's clock, which
    /// [`Store::now`](super::Store::now) reads.
    #[must_use]
    pub fn since(self, time: Timestamp) -> Self {
        Self { since: Some(time), ..self }
    }

    /// Only those that were given up before this time, by the database's clock.
    #[must_use]
    pub fn before(self, time: Timestamp) -> Self {
        Self { before: Some(time), ..self }
    }

    /// Only those with this text in the error. The text is literal: case counts, and `%` and `_` stand for themselves.
    #[must_use]
    pub fn error_contains(self, text: impl Into<String>) -> Self {
        Self { error: Some(text.into()), ..self }
    }
}

/// An event that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadEvent {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Its id, as stored.
    pub event_id: String,
    /// The event type.
    pub event_type: String,
    /// The kind of thing it happened to; `__GLOBAL__` where the row names none.
    pub aggregate_type: String,
    /// The id of the thing it happened to.
    pub aggregate_id: Option<String>,
    /// The tenant it belongs to.
    pub tenant_id: Option<String>,
    /// The ordering key as stored.
    pub key: Option<String>,
    /// The handler that gave it up, if its event has several.
    pub handler: Option<String>,
    /// Failed handler calls.
    pub attempts: i32,
    /// The error for which it was given up.
    pub last_error: Option<String>,
    /// The time at which it was written.
    pub created_at: Timestamp,
    /// The time at which it was given up; rows that another program declared DEAD may lack it.
    pub dead_at: Option<Timestamp>,
}
