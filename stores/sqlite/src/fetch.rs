use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow};
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, query, query_as};

use crate::sql::Sql;
use crate::{json, row};

/// Reads rows that are due; with a node, only those that it may take.
///
/// Each statement sees a state of its own. Due rows are read first: a row can come to have a due time between the two
/// reads, but cannot lose it while it is pending, so none is returned twice.
pub(crate) async fn fetch(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: Option<&NodeId>,
    fetch: &Fetch,
) -> Result<Fetched, sqlx::Error> {
    let (node, exclude) = (node.map(NodeId::as_str), json::array(fetch.exclude.iter().copied()));
    let times = query_as(AssertSqlSafe(Arc::clone(&sql.fetch_times))).bind(node).bind(exclude.as_str());
    let (now, earliest, next): (i64, Option<i64>, Option<i64>) = times.fetch_one(&mut *connection).await?;
    let mut due = match earliest {
        Some(time) if time <= now => {
            let select = select(&sql.fetch_due, node, &exclude, now, fetch.limit);
            read(connection, select, true).await?
        }
        _ => Vec::new(),
    };
    let wanted = (fetch.limit - due.len()).max(share(fetch.limit));
    let select = select(&sql.fetch_ready, node, &exclude, fetch.above, wanted);
    let mut rows = read(connection, select, false).await?;
    due.truncate(fetch.limit - rows.len());
    rows.append(&mut due);
    let next_due = next.filter(|_| rows.len() < fetch.limit).map(|next| micros(next - now));
    Ok(Fetched { rows, next_due })
}

/// How many places the rows without a due time have at least: a third, where there are two places to share.
fn share(limit: usize) -> usize {
    limit.div_ceil(3).min(limit / 2)
}

type Select<'q> = Query<'q, Sqlite, SqliteArguments>;

fn select<'q>(sql: &Arc<str>, node: Option<&str>, exclude: &str, bound: i64, limit: usize) -> Select<'q> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let select = query(AssertSqlSafe(Arc::clone(sql)));
    select.bind(node.map(str::to_owned)).bind(exclude.to_owned()).bind(bound).bind(limit)
}

async fn read(
    connection: &mut SqliteConnection,
    select: Select<'_>,
    timed: bool,
) -> Result<Vec<FetchedRow>, sqlx::Error> {
    let mut rows = Vec::new();
    let mut found = select.fetch(connection);
    while let Some(found) = found.try_next().await? {
        rows.push(row::decode(&found, timed)?);
    }
    Ok(rows)
}

/// A span of time as the database counts it.
pub(crate) fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn each_kind_has_a_third_where_two_can_share() {
        assert_eq!([1, 2, 3, 4, 5, 6, 1000].map(share), [0, 1, 1, 2, 2, 2, 334]);
        for limit in 2..500 {
            assert!(share(limit) * 3 >= limit && (limit - share(limit)) * 3 >= limit, "{limit}");
        }
    }
}
