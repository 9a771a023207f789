use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::ownership::{LeaseMark, NodeId};
use pillarbox_core::row::Status;
use pillarbox_core::store::{Fetch, FetchScope, Fetched, Heads, OrderKey};

use crate::answer::{Answers, int, is_true};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::row;
use crate::session::Within;
use crate::sql::{Sql, script};
use crate::store::Inner;

/// Reads the next due time, due rows and ready rows in one round trip; and for a scope, last, the number of
/// interventions, the presence of heads and the end of the reader's lease: a change after the rows were read is noticed as well, which only costs.
///
/// Rows that are too large together are not read to their end: the connection is given up, and the call begins anew with as many
/// rows as fit. So a limit of bytes costs nothing where it is not reached.
pub(crate) async fn fetch(store: &Inner, fetch: &Fetch) -> Result<Fetched, Failure> {
    let interventions = fetch.scope.as_ref().map(|scope| {
        let node = Literal::optional_text(scope.node.as_ref().map(NodeId::as_str));
        script([store.sql.interventions.clone(), fill(&store.sql.lease_end, &[("id", &node)])])
    });
    let mut wanted = fetch.clone();
    loop {
        let queries = queries(&store.sql, &wanted, "", "");
        let mut session = store.sessions.session().await?;
        let asked = script(queries.iter().chain(&interventions));
        match session.run_within(asked, row::content_bytes, fetch.max_bytes).await? {
            Within::Cut { rows } => wanted.limit = rows,
            Within::Answers(answers) => {
                session.finish();
                return answered(&answers, queries.len(), fetch, wanted.limit);
            }
        }
    }
}

/// The result of a fetch, in `queries` of which it read up to `limit` rows.
fn answered(answers: &Answers, queries: usize, fetch: &Fetch, limit: usize) -> Result<Fetched, Failure> {
    let fetched = truncate(found(answers, 0, limit)?, limit < fetch.limit);
    let interventions = answers.first(queries).map_or(Ok(0), |row| int(row, 0))?;
    let asked = fetch.scope.as_ref().is_some_and(|scope| scope.heads != Heads::None);
    let has_heads = asked && answers.first(queries).map_or(Ok(false), |row| is_true(row, 1))?;
    let lease = answers.first(queries + 1).map(|row| int(row, 0)).transpose()?.map(LeaseMark);
    Ok(Fetched { interventions, has_heads, lease, ..fetched })
}

/// Marks the result of a fetch as truncated if rows were left out for their size.
pub(crate) fn truncate(fetched: Fetched, truncated: bool) -> Fetched {
    Fetched { truncated, next_due: fetched.next_due.filter(|_| !truncated), ..fetched }
}

/// The three queries of a fetch, in which `free` says which rows are meant and `locking` how they are read.
pub(crate) fn queries(sql: &Sql, fetch: &Fetch, free: &str, locking: &str) -> [String; 3] {
    let mut wanted = free.to_owned();
    let (mut keys, mut heads, mut unblocked) = (String::new(), String::new(), String::new());
    if let Some(scope) = &fetch.scope {
        let (first, last) = (Literal::int(*scope.partitions.start()), Literal::int(*scope.partitions.end()));
        wanted.push_str(&fill(&sql.scope, &[("first", &first), ("last", &last)]));
        keys = of_keys(sql, scope);
        (heads, unblocked) = blocking(sql, scope.heads);
    }
    if !fetch.without_types.is_empty() {
        let types: Vec<&str> = fetch.without_types.iter().map(|name| &**name).collect();
        wanted.push_str(&fill(&sql.without_types, &[("types", &Literal::byte_list(&types))]));
    }
    if !fetch.without_handlers.is_empty() {
        let handlers: Vec<&str> = fetch.without_handlers.iter().map(|name| &**name).collect();
        wanted.push_str(&fill(&sql.without_handlers, &[("handlers", &Literal::byte_list(&handlers))]));
    }
    if !fetch.exclude.is_empty() {
        wanted.push_str(&fill(&sql.wanted, &[("seqs", &Literal::ints(&fetch.exclude))]));
    }
    // Zero means from the lowest pending row, wherever that is.
    let above = Literal::int(if fetch.above == 0 { i64::MIN } else { fetch.above });
    let (heads, locking, limit) =
        (Literal::clause(heads), Literal::clause(locking.to_owned()), Literal::count(fetch.limit));
    // When the next row is due it may still be blocked, or be of another key: the next fetch finds out, and nothing is missed. To
    // ask for certain keys would pass over all delayed rows of others.
    let next_due = fill(&sql.fetch_times, &[("wanted", &Literal::clause(wanted.clone()))]);
    let wanted = Literal::clause(wanted + &keys + &unblocked);
    let values = [("above", &above), ("heads", &heads), ("wanted", &wanted), ("limit", &limit), ("locking", &locking)];
    [next_due, fill(&sql.fetch_due, &values), fill(&sql.fetch_ready, &values)]
}

/// The conditions that a scope makes of its keys.
fn of_keys(sql: &Sql, scope: &FetchScope) -> String {
    let mut conditions = String::new();
    let of = |keys: &[OrderKey]| -> Vec<String> {
        let of_handlers = by_handler(keys).into_iter();
        of_handlers.map(|(handler, keys)| fill(&sql.of_keys, &[("keys", &keys), ("handler", &handler)])).collect()
    };
    for left_out in of(&scope.without) {
        conditions.push_str(&fill(&sql.without, &[("of_keys", &Literal::clause(left_out))]));
    }
    if !scope.only.is_empty() {
        let any = Literal::clause(of(&scope.only).join(" OR "));
        conditions.push_str(&fill(&sql.only, &[("of_keys", &any)]));
    }
    conditions
}

/// The handlers of keys, each with a list of its keys.
fn by_handler(keys: &[OrderKey]) -> Vec<(Literal, Literal)> {
    let mut handlers: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for OrderKey { handler, key } in keys {
        handlers.entry(handler.as_deref()).or_default().push(key);
    }
    let literals = |(handler, keys): (_, Vec<&str>)| (Literal::optional_text(handler), Literal::byte_list(&keys));
    handlers.into_iter().map(literals).collect()
}

/// The look for heads, and the condition that there are none.
fn blocking(sql: &Sql, heads: Heads) -> (String, String) {
    let states: &[Status] = match heads {
        Heads::None => &[],
        Heads::Retry => &[Status::Retry],
        Heads::RetryAndDead => &[Status::Retry, Status::Dead],
    };
    let (mut joins, mut unblocked) = (String::new(), String::new());
    for status in states {
        let head = Literal::clause(format!("head_{}", status.code()));
        joins.push('\n');
        joins.push_str(&fill(&sql.heads, &[("head", &head), ("status", &Literal::int(status.code()))]));
        unblocked.push_str(&fill(&sql.unblocked, &[("head", &head)]));
    }
    (joins, unblocked)
}

/// The result of the queries, the first of which is the statement at `index`. Each read as many rows as are asked for in all; when
/// both kinds abound, rows with a due time get a third and the others the rest.
pub(crate) fn found(answers: &Answers, index: usize, limit: usize) -> Result<Fetched, Failure> {
    let next_due = answers.first(index).map(|row| int(row, 0)).transpose()?;
    let (due, ready) = (answers.rows(index + 1), answers.rows(index + 2));
    let due = &due[..due.len().min(limit.div_ceil(3).max(limit.saturating_sub(ready.len())))];
    let ready = &ready[..ready.len().min(limit.saturating_sub(due.len()))];
    let rows = ready.iter().chain(due).map(row::decode).collect::<Result<Vec<_>, _>>()?;
    let next_due = next_due.filter(|_| rows.len() < limit).map(wait);
    Ok(Fetched { rows, next_due, ..Fetched::default() })
}

/// A time left, which may have passed.
pub(crate) fn wait(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
