use std::time::Duration;

use pillarbox_core::store::{Fetch, Fetched};

use crate::answer::{Answers, int};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::row;
use crate::sql::{Sql, script};
use crate::store::Inner;

/// Reads the next due time, due rows and ready rows in one round trip.
pub(crate) async fn fetch(store: &Inner, fetch: &Fetch) -> Result<Fetched, Failure> {
    let mut session = store.sessions.session().await?;
    let answers = session.run(script(queries(&store.sql, fetch, "", ""))).await?;
    session.finish();
    found(&answers, 0, fetch.limit)
}

/// The three queries of a fetch, in which `free` says which rows are meant and `locking` how they are read.
pub(crate) fn queries(sql: &Sql, fetch: &Fetch, free: &str, locking: &str) -> [String; 3] {
    let mut wanted = free.to_owned();
    if !fetch.exclude.is_empty() {
        wanted.push_str(&fill(&sql.wanted, &[("seqs", &Literal::ints(&fetch.exclude))]));
    }
    // Zero means from the lowest pending row, wherever that is.
    let above = Literal::int(if fetch.above == 0 { i64::MIN } else { fetch.above });
    let (wanted, locking) = (Literal::clause(wanted), Literal::clause(locking.to_owned()));
    let limit = Literal::count(fetch.limit);
    let values = [("above", &above), ("wanted", &wanted), ("limit", &limit), ("locking", &locking)];
    [&sql.next_due, &sql.due, &sql.ready].map(|query| fill(query, &values))
}

/// What the queries found, the first of which is the statement at `index`. Each read as many rows as are asked for in
/// all; when both kinds abound, rows with a due time get a third and the others the rest.
pub(crate) fn found(answers: &Answers, index: usize, limit: usize) -> Result<Fetched, Failure> {
    let next_due = answers.first(index).map(|row| int(row, 0)).transpose()?;
    let (due, ready) = (answers.rows(index + 1), answers.rows(index + 2));
    let due = &due[..due.len().min(limit.div_ceil(3).max(limit.saturating_sub(ready.len())))];
    let ready = &ready[..ready.len().min(limit.saturating_sub(due.len()))];
    let rows = ready.iter().chain(due).map(row::decode).collect::<Result<Vec<_>, _>>()?;
    let next_due = next_due.filter(|_| rows.len() < limit).map(wait);
    Ok(Fetched { rows, next_due })
}

/// A time left, which may have passed.
pub(crate) fn wait(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
