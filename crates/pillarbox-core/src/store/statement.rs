use std::fmt;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::row::NewRow;

/// The family of SQL that a store speaks and a connection understands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect(&'static str);

impl Dialect {
    /// PostgreSQL.
    pub const POSTGRES: Self = Self("PostgreSQL");
    /// SQLite.
    pub const SQLITE: Self = Self("SQLite");
    /// MySQL and MariaDB.
    pub const MYSQL: Self = Self("MySQL");
    /// The in-memory store, which takes rows as they are.
    pub const MEMORY: Self = Self("memory");

    /// True if the transaction goes on after a statement that failed, with all that was done before it.
    pub(crate) fn goes_on_after_errors(self) -> bool {
        self == Self::MYSQL || self == Self::SQLITE
    }

    /// A dialect of another store; two are the same if their names are.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// One SQL statement with its values in bind order: all an adapter needs to know to insert events.
///
/// The store writes the text, the adapter binds, so that the SQL of an insert stands in one place per database.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    /// The text, with the placeholders of its dialect.
    pub sql: Arc<str>,
    /// The values, in the order of the placeholders.
    pub binds: Vec<Bind<'a>>,
    /// True if the same text comes again, so that preparing it once per connection pays.
    pub reusable: bool,
}

/// A value to bind. Times are microseconds since the Unix epoch; the SQL text converts them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Bind<'a> {
    /// A 64-bit integer or NULL.
    Int(Option<i64>),
    /// Text or NULL.
    Text(Option<&'a str>),
    /// Bytes or NULL.
    Bytes(Option<&'a [u8]>),
    /// An array of 64-bit integers (databases with arrays).
    Ints(Vec<Option<i64>>),
    /// An array of texts.
    Texts(Vec<Option<&'a str>>),
    /// An array of byte strings.
    ByteArrays(Vec<Option<&'a [u8]>>),
}

impl<'a> Bind<'a> {
    /// The values that a writer sets, in this order: `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`,
    /// `ordering_key`, `partition`, `payload`, `payload_bytes`, `content_type`, `headers`, `available_at`, the delay that takes its
    /// place, `occurred_at`, `locked_by` and `handler`. `micros` turns times into what the database can hold.
    #[must_use]
    pub fn of(row: &'a NewRow, micros: impl Fn(Timestamp) -> i64) -> [Self; 16] {
        let event = row.envelope();
        let (bytes, content_type) = row.payload_bytes().unzip();
        [
            Bind::Text(Some(row.event_id())),
            Bind::Text(Some(event.event_type())),
            Bind::Text(Some(event.aggregate_type())),
            Bind::Text(event.aggregate_id()),
            Bind::Text(event.tenant_id()),
            Bind::Text(event.key()),
            Bind::Int(Some(row.partition().into())),
            Bind::Text(row.payload()),
            Bind::Bytes(bytes),
            Bind::Text(content_type),
            Bind::Text(row.headers()),
            Bind::Int(row.available_at().map(&micros)),
            // Events are delayed by 1,000 years at most.
            Bind::Int(row.delay().map(|delay| i64::try_from(delay.as_micros()).unwrap_or(i64::MAX))),
            Bind::Int(Some(micros(event.occurred_at()))),
            Bind::Text(row.locked_by()),
            Bind::Text(row.handler()),
        ]
    }

    /// The same, and behind them `unique_key`.
    #[must_use]
    pub fn of_unique(row: &'a NewRow, micros: impl Fn(Timestamp) -> i64) -> Vec<Self> {
        let mut binds = Vec::from(Self::of(row, micros));
        binds.push(Bind::Text(row.unique_key()));
        binds
    }
}
