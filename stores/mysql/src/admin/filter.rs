//! The conditions of which filters are made.

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::Attributes;

use crate::literal::Literal;

/// The conditions on a time of a row. Whole numbers compare at any time; a date that the server does not know would be NULL.
pub(super) fn is_within(row_time: &str, since: Option<Timestamp>, before: Option<Timestamp>) -> String {
    let bounds = [(since, ">="), (before, "<")].into_iter();
    let bounds = bounds.filter_map(|(time, relation)| Some((time?.as_micros(), relation)));
    bounds
        .map(|(time, relation)| {
            format!(" AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {row_time}) {relation} {}", Literal::int(time))
        })
        .collect()
}

/// The condition on a row's error; nothing for any.
pub(super) fn has_error(text: &Option<String>) -> String {
    let condition = |text| format!(" AND LOCATE({}, CAST(`last_error` AS BINARY)) > 0", Literal::bytes(text));
    text.as_deref().map(condition).unwrap_or_default()
}

/// The conditions on the attributes of a row. They compare bytes: to the column's collation a name and the same with a space behind it are
/// one.
pub(super) fn of_attributes(attributes: &Attributes) -> String {
    let Attributes { event_type, aggregate_type, tenant_id, handler, key } = attributes;
    let mut clause = String::new();
    for (column, wanted) in [("event_type", event_type), ("tenant_id", tenant_id), ("handler", handler)] {
        if let Some(wanted) = wanted {
            clause.push_str(&format!(" AND CAST(`{column}` AS BINARY) = {}", Literal::bytes(wanted)));
        }
    }
    if let Some(wanted) = aggregate_type {
        let unnamed = if wanted == GLOBAL_AGGREGATE { " OR `aggregate_type` IS NULL" } else { "" };
        let wanted = Literal::bytes(wanted);
        clause.push_str(&format!(" AND (CAST(`aggregate_type` AS BINARY) = {wanted}{unnamed})"));
    }
    clause.push_str(&of_key(key));
    clause
}

/// The condition on a row's key; nothing for any key.
pub(super) fn of_key(key: &Option<String>) -> String {
    let condition =
        |key| format!(" AND CAST(COALESCE(`ordering_key`, `aggregate_id`) AS BINARY) <=> {}", Literal::bytes(key));
    key.as_deref().map(condition).unwrap_or_default()
}
