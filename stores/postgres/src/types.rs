//! Leaving out event types and handlers: conditions that are in the text only where they are asked for.

use std::borrow::Cow;

use pillarbox_core::store::Fetch;
use tokio_postgres::types::Type;

use crate::session::Param;

/// The placeholder of the conditions.
const PLACE: &str = "/* without_types */";

/// The names that a fetch leaves out.
pub(crate) struct LeftOut<'a> {
    types: Vec<&'a str>,
    handlers: Vec<&'a str>,
}

impl<'a> LeftOut<'a> {
    pub(crate) fn by(fetch: &'a Fetch) -> Self {
        let names = |names: &'a [Box<str>]| names.iter().map(|name| &**name).collect();
        Self { types: names(&fetch.without_types), handlers: names(&fetch.without_handlers) }
    }

    /// The statement with the conditions, if there is anything to leave out; the lists are bound as parameters behind the others. A
    /// sub-select hides them from the planner, whose guess at them would cost more than it does.
    pub(crate) fn of<'s>(&'a self, sql: &'s str, params: &mut Vec<Param<'a>>) -> Cow<'s, str> {
        let mut conditions = String::new();
        if !self.types.is_empty() {
            params.push((&self.types, Type::TEXT_ARRAY));
            let list = params.len();
            conditions.push_str(&format!(r#" AND "event_type" NOT IN (SELECT unnest(${list}::text[]))"#));
        }
        if !self.handlers.is_empty() {
            params.push((&self.handlers, Type::TEXT_ARRAY));
            let list = params.len();
            conditions
                .push_str(&format!(r#" AND ("handler" IS NULL OR "handler" NOT IN (SELECT unnest(${list}::text[])))"#));
        }
        if conditions.is_empty() { Cow::Borrowed(sql) } else { Cow::Owned(sql.replace(PLACE, &conditions)) }
    }
}
