//! Leaving out event types: a condition that is in the text only where it is asked for.

use std::borrow::Cow;

/// The placeholder of the condition.
const PLACE: &str = "/* without_types */";

/// The statement with the condition, if there is anything to leave out; the list is bound as the parameter of this number. A
/// sub-select hides it from the planner, whose guess at it would cost more than it does.
pub(crate) fn without<'a>(sql: &'a str, types: &[Box<str>], parameter: usize) -> Cow<'a, str> {
    if types.is_empty() {
        return Cow::Borrowed(sql);
    }
    let condition = format!(r#" AND "event_type" NOT IN (SELECT unnest(${parameter}::text[]))"#);
    Cow::Owned(sql.replace(PLACE, &condition))
}

/// The list, as it is bound.
pub(crate) fn names(types: &[Box<str>]) -> Vec<&str> {
    types.iter().map(|name| &**name).collect()
}
