use std::fmt;

use crate::error::ConfigError;

/// Characters of each part of a table's name: with the longest suffix of an index it fits the 63 of PostgreSQL.
const MAX_PART: usize = 48;

/// The name of an outbox's event table, and with it of the tables beside it.
///
/// `outbox_event` stands beside `outbox_node`, `outbox_partition`, `outbox_migration`, `outbox_inbox`, `outbox_pause` and `outbox_audit`; a name that does not end in
/// `_event` is itself the prefix. With a schema, all of them live in it. Names are checked to be plain identifiers and
/// are always quoted in SQL, so case matters and no keyword is in the way.
///
/// ```
/// use pillarbox_core::store::TableName;
/// let table = TableName::parse("billing.outbox_event")?;
/// assert_eq!(table.schema(), Some("billing"));
/// assert_eq!(table.event(), "outbox_event");
/// assert_eq!(table.beside("node"), "outbox_node");
/// # Ok::<(), pillarbox_core::error::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<String>,
    event: String,
}

impl TableName {
    /// The roles of the tables [beside](Self::beside) the event table.
    pub const COMPANIONS: [&'static str; 6] = ["node", "partition", "migration", "inbox", "pause", "audit"];

    /// Reads `table` or `schema.table`.
    ///
    /// # Errors
    /// When a part is empty, longer than 48 characters, or no identifier: a letter or underscore, then letters, digits
    /// and underscores.
    pub fn parse(name: &str) -> Result<Self, ConfigError> {
        let (schema, event) = match name.split_once('.') {
            Some((schema, event)) => (Some(identifier(schema)?), identifier(event)?),
            None => (None, identifier(name)?),
        };
        Ok(Self { schema, event })
    }

    /// The same with a prefix before the event table, and so before the tables beside it; the schema stays.
    ///
    /// ```
    /// use pillarbox_core::store::TableName;
    /// let table = TableName::parse("billing.outbox_event")?.prefixed("shop_")?;
    /// assert_eq!(table.to_string(), "billing.shop_outbox_event");
    /// assert_eq!(table.beside("node"), "shop_outbox_node");
    /// # Ok::<(), pillarbox_core::error::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// When the prefix is no start of an identifier, or the whole is longer than 48 characters.
    pub fn prefixed(self, prefix: &str) -> Result<Self, ConfigError> {
        let name = format!("{prefix}{}", self.event);
        match identifier(&name) {
            Ok(event) => Ok(Self { event, ..self }),
            Err(error) => {
                let problem = format!("makes the table {name:?}, which {}", error.problem());
                let remedy =
                    "set a few letters, digits and underscores, such as `shop_`; a schema belongs to the table";
                Err(ConfigError::new("table_prefix", problem, remedy))
            }
        }
    }

    /// The schema, if one was named.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The event table, without the schema.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.event
    }

    /// A table beside it, without the schema, by its [role](Self::COMPANIONS).
    #[must_use]
    pub fn beside(&self, role: &str) -> String {
        format!("{}_{role}", self.event.strip_suffix("_event").unwrap_or(&self.event))
    }

    /// The other event table whose tables beside it would have the same names: `orders_event` and `orders` are such a pair.
    pub(crate) fn sharing(&self) -> String {
        self.event.strip_suffix("_event").map_or_else(|| format!("{}_event", self.event), ToOwned::to_owned)
    }

    /// All tables of the outbox, without the schema.
    #[must_use]
    pub fn all(&self) -> [String; 7] {
        let [node, partition, migration, inbox, pause, audit] = Self::COMPANIONS.map(|role| self.beside(role));
        [self.event.clone(), node, partition, migration, inbox, pause, audit]
    }
}

impl Default for TableName {
    fn default() -> Self {
        Self { schema: None, event: "outbox_event".to_owned() }
    }
}

/// The text that the options of a store take.
impl From<TableName> for String {
    fn from(table: TableName) -> Self {
        table.to_string()
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.event)
    }
}

fn identifier(part: &str) -> Result<String, ConfigError> {
    let refuse = |problem: String| {
        Err(ConfigError::new("table", problem, "name it like `outbox_event` or `billing.outbox_event`"))
    };
    let mut characters = part.chars();
    let Some(first) = characters.next() else { return refuse("has an empty part".to_owned()) };
    if part.len() > MAX_PART {
        return refuse(format!("has a part of {} characters, over the limit of {MAX_PART}", part.chars().count()));
    }
    if !(first.is_ascii_alphabetic() || first == '_') {
        return refuse(format!("has a part that starts with {first:?}"));
    }
    match characters.find(|c| !(c.is_ascii_alphanumeric() || *c == '_')) {
        Some(odd) => refuse(format!("contains {odd:?}, which is not part of an identifier")),
        None => Ok(part.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::TableName;

    #[test]
    fn names_that_are_no_identifiers_are_refused() {
        let long = "x".repeat(49);
        for name in ["", ".", "a.", ".b", "a.b.c", "1a", "a-b", "a b", "a\"b", "é", "a;drop table x", &long] {
            assert_eq!(TableName::parse(name).map_err(|error| error.field()), Err("table"), "{name:?}");
        }
    }

    #[test]
    fn a_name_without_the_usual_ending_is_the_prefix() {
        let table = TableName::parse("events").expect("valid");
        assert_eq!((table.beside("node").as_str(), table.to_string().as_str()), ("events_node", "events"));
    }

    #[test]
    fn a_prefix_stands_before_all_tables_of_any_name() {
        let prefixed = |name| TableName::parse(name).and_then(|table| table.prefixed("shop_"));
        let names = |name| prefixed(name).map(|table| (table.to_string(), table.beside("node")));
        let expected = |event: &str, node: &str| Ok((event.to_owned(), node.to_owned()));
        assert_eq!(names("outbox_event"), expected("shop_outbox_event", "shop_outbox_node"));
        assert_eq!(names("events"), expected("shop_events", "shop_events_node"));
        assert_eq!(names("billing.outbox_event"), expected("billing.shop_outbox_event", "shop_outbox_node"));
        assert_eq!(TableName::default().prefixed(""), Ok(TableName::default()));
    }

    #[test]
    fn a_prefix_that_makes_no_identifier_is_refused() {
        let long = "x".repeat(37);
        for prefix in ["1", "a-", "billing.", "a b", "\"", "é", &long] {
            let refused = TableName::default().prefixed(prefix);
            assert_eq!(refused.map_err(|error| error.field()), Err("table_prefix"), "{prefix:?}");
        }
        let error = TableName::default().prefixed("1_").map_err(|error| error.to_string());
        let expected = "setting `table_prefix` makes the table \"1_outbox_event\", which has a part that starts with '1'; \
             set a few letters, digits and underscores, such as `shop_`; a schema belongs to the table";
        assert_eq!(error, Err(expected.to_owned()));
    }
}
