use std::time::Duration;

use futures_util::TryStreamExt as _;
use pillarbox_core::ownership::{LeaseMark, NodeId};
use pillarbox_core::store::{Fetch, FetchScope, Fetched, FetchedRow, Heads};
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr as _, SqlStr, Sqlite, SqliteConnection, query, query_as};

use crate::sql::{Reads, Sql};
use crate::store::Session;
use crate::{json, row};

/// Reads rows that are due; with a node only those that it may take, without one those of the scope.
///
/// Each statement sees a state of its own. Due rows are read first, since a row can come to have a due time between the two
/// reads; one that loses it in between is dropped from them. The number of interventions, the presence of heads and the end of
/// the reader's lease are read last: a change after the rows were read is noticed as well, which only costs.
pub(crate) async fn fetch(session: &mut Session<'_>, node: Option<&NodeId>, fetch: &Fetch) -> sqlx::Result<Fetched> {
    let wanted = Wanted::new(session.sql, node, fetch);
    let times = wanted.select(wanted.times, 0, 0).fetch_one(&mut *session.connection).await?;
    let (now, earliest, next): (i64, Option<i64>, Option<i64>) =
        (times.try_get(0)?, times.try_get(1)?, times.try_get(2)?);
    let (mut due, due_truncated) = match earliest {
        Some(time) if time <= now => {
            let select = wanted.select(wanted.due, now, fetch.limit);
            read(session.connection, select, fetch.max_bytes, true).await?
        }
        _ => (Vec::new(), false),
    };
    let places = fetch.limit - due.len().min(fetch.limit.div_ceil(3));
    // Zero means from the lowest row, which a program may have given a number below that.
    let above = if fetch.above == 0 { i64::MIN } else { fetch.above };
    let select = wanted.select(wanted.ready, above, places);
    let (mut rows, ready_truncated) = read(session.connection, select, fetch.max_bytes, false).await?;
    due.retain(|row| rows.binary_search_by_key(&row.seq(), FetchedRow::seq).is_err());
    due.truncate(fetch.limit - rows.len());
    rows.append(&mut due);
    let truncated = due_truncated || ready_truncated;
    let next_due = next.filter(|_| rows.len() < fetch.limit && !truncated).map(|next| micros(next - now));
    let fetched = Fetched { rows, truncated, next_due, ..Fetched::default() };
    let Some(scope) = &fetch.scope else { return Ok(fetched) };
    let select = query_as(session.sql.interventions.clone()).bind(scope.heads != Heads::None);
    let (interventions, has_heads, lease): (i64, bool, Option<i64>) =
        select.bind(scope.node.as_ref().map(NodeId::as_str)).fetch_one(&mut *session.connection).await?;
    Ok(Fetched { interventions, has_heads, lease: lease.map(LeaseMark), ..fetched })
}

type Select<'q> = Query<'q, Sqlite, SqliteArguments>;

/// The statements of a fetch, and their parameters.
struct Wanted<'f> {
    times: &'f SqlStr,
    ready: &'f SqlStr,
    due: &'f SqlStr,
    node: Option<&'f NodeId>,
    exclude: String,
    scope: Option<&'f FetchScope>,
    without_types: &'f [Box<str>],
    without_handlers: &'f [Box<str>],
}

/// The placeholder in the statements for the conditions that leave out event types and handlers, if there are any to leave out.
const TYPES: &str = "/* without_types */";

impl<'f> Wanted<'f> {
    fn new(sql: &'f Sql, node: Option<&'f NodeId>, fetch: &'f Fetch) -> Self {
        // A claim knows no scope.
        let scope = fetch.scope.as_ref().filter(|_| node.is_none());
        let (times, ready, due) = match scope.map(|scope| sql.scoped.reads(scope)) {
            None => (&sql.fetch_times, &sql.fetch_ready, &sql.fetch_due),
            Some(Reads { ready, due }) => (&sql.scoped.times, ready, due),
        };
        Self {
            times,
            ready,
            due,
            node,
            exclude: json::array(fetch.exclude.iter().copied()),
            scope,
            without_types: &fetch.without_types,
            without_handlers: &fetch.without_handlers,
        }
    }

    fn select(&self, sql: &SqlStr, bound: i64, limit: usize) -> Select<'f> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // After the four that every statement binds, and the four of a scope.
        let mut parameter = if self.scope.is_some() { 9 } else { 5 };
        let mut conditions = String::new();
        if !self.without_types.is_empty() {
            conditions.push_str(&format!(" AND hex(event_type) NOT IN (SELECT value FROM json_each(?{parameter}))"));
            parameter += 1;
        }
        if !self.without_handlers.is_empty() {
            conditions.push_str(&format!(
                " AND (handler IS NULL OR hex(handler) NOT IN (SELECT value FROM json_each(?{parameter})))"
            ));
        }
        let sql = if conditions.is_empty() {
            sql.clone()
        } else {
            AssertSqlSafe(sql.as_str().replace(TYPES, &conditions)).into_sql_str()
        };
        let mut select =
            query(sql).bind(self.node.map(NodeId::as_str)).bind(self.exclude.clone()).bind(bound).bind(limit);
        if let Some(scope) = self.scope {
            let only = (!scope.only.is_empty()).then(|| json::keys(&scope.only));
            select = select.bind(*scope.partitions.start()).bind(*scope.partitions.end());
            select = select.bind(json::keys(&scope.without)).bind(only);
        }
        for names in [self.without_types, self.without_handlers].into_iter().filter(|names| !names.is_empty()) {
            select = select.bind(json::texts(names));
        }
        select
    }
}

/// Reads rows up to the one that brings their content to `max_bytes`; true if one did.
async fn read(
    connection: &mut SqliteConnection,
    select: Select<'_>,
    max_bytes: usize,
    timed: bool,
) -> sqlx::Result<(Vec<FetchedRow>, bool)> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut found = select.fetch(connection);
    while let Some(found) = found.try_next().await? {
        let row = row::decode(&found, timed)?;
        bytes += row::content_bytes(&found)?;
        rows.push(row);
        if bytes >= max_bytes {
            return Ok((rows, true));
        }
    }
    Ok((rows, false))
}

/// A span of time as the database counts it.
pub(crate) fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
