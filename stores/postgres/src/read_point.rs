//! The read point: where reading from the lowest pending row begins.

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::Proof;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_postgres::types::{Oid, Type};

use crate::error::Failure;
use crate::order::writers_of;
use crate::session::{BY_INDEX, Session};
use crate::store::Inner;

/// Numbers that one statement looks at, so that none takes long, on a cold disk either.
const WINDOW: i64 = 50_000;
/// Rows among which a few that wait stand in the way of the point.
const CROWD: i64 = 20_000;

/// The time that a call may take.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// The time after which a transaction ends and keeps what it has found.
    slice: Duration,
    /// The time after which the rest is left to the next call, unless that is [far](Self::far).
    patience: Duration,
    /// More numbers than this are far.
    far: i64,
    /// The time after which what is far is left to the next call, too: far below the limit of a call, whose end would cost a connection and
    /// have the node read everything again.
    most: Duration,
}

const PACE: Pace = Pace {
    slice: Duration::from_millis(500),
    patience: Duration::from_secs(2),
    far: 1_000_000,
    most: Duration::from_secs(10),
};

/// The proofs and checks that the next point rests on, as the row keeps them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The `seq` up to which the table is complete.
    complete: Option<i64>,
    /// The proof that follows.
    next: Option<Proof>,
    /// The check of the point that is under way.
    check: Option<Check>,
    /// Another number for each state, so that who has seen an earlier one changes nothing.
    turn: u64,
}

/// A check that no row below the point waits for its first attempt: only what nobody should do puts one there.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Check {
    /// No row waits up to this `seq`.
    up_to: i64,
    /// The interventions that had been counted when it began.
    interventions: i64,
}

/// The result of one transaction.
#[derive(Debug, Clone, Copy)]
struct Raised {
    /// False if somebody else has raised it a moment ago, or does so now.
    done: bool,
    /// True if there is more to do.
    goes_on: bool,
    /// True if what is left is so much that it is not left to the next call.
    is_far: bool,
}

/// Raises the read point. False if that was done a moment ago.
pub(crate) async fn raise(store: &Inner) -> Result<bool, Failure> {
    raise_at(store, PACE).await
}

async fn raise_at(store: &Inner, pace: Pace) -> Result<bool, Failure> {
    let began = Instant::now();
    let first = raise_once(store, pace, false).await?;
    let mut last = first;
    // What was delivered above the point, each reader passes over: in a table that was restored, of many millions of rows, until this is done.
    while last.goes_on && began.elapsed() < if last.is_far { pace.most } else { pace.patience } {
        last = raise_once(store, pace, true).await?;
    }
    Ok(first.done)
}

/// Raises it in one transaction: so the proof that it rests on, and the look that completes the proof, are of the same server and of
/// the same history, whatever stands between this process and the server.
async fn raise_once(store: &Inner, pace: Pace, again: bool) -> Result<Raised, Failure> {
    // One for each: fetches and settles may be waiting for it.
    let mut session = store.sessions.session().await?;
    let raised = raise_in(store, &mut session, pace, again).await?;
    session.finish();
    Ok(raised)
}

async fn raise_in(store: &Inner, session: &mut Session, pace: Pace, again: bool) -> Result<Raised, Failure> {
    let transaction = session.transaction().await?;
    // A point that a crash of the server takes back is a lower one.
    transaction.batch_execute(&format!("{BY_INDEX}; SET LOCAL synchronous_commit = off")).await?;
    let row = transaction.query_typed_one(&store.sql.read_point, &[]).await?;
    let (point, before): (Option<i64>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let (interventions, heard_of_all): (i64, bool) = (row.try_get(2)?, row.try_get(3)?);
    let (of_these_numbers, was_moved_just_now, is_to_be_checked): (bool, bool, bool) =
        (row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
    let (sequence, file): (Option<Oid>, Option<i64>) = (row.try_get(7)?, row.try_get(8)?);
    if was_moved_just_now && !again {
        return Ok(Raised { done: false, goes_on: false, is_far: false });
    }
    if !row.try_get(9)? {
        tracing::debug!(table = %store.table, "the numbers of the table are cached by sessions, so it is read from its beginning");
        return Ok(Raised { done: true, goes_on: false, is_far: false });
    }
    // What was known of other numbers means nothing.
    let known = before.as_deref().filter(|_| of_these_numbers);
    let mut state: State = known.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let point = point.filter(|_| of_these_numbers);
    state.complete = Proof::advance(&mut state.next, writers_of(store, &transaction).await?).max(state.complete);

    let (mut found, mut checked) = (point, false);
    if let Some(point) = point
        && (!heard_of_all || is_to_be_checked || state.check.is_some())
    {
        found = Some(check(store, &transaction, pace, &mut state, point, interventions).await?);
        checked = state.check.is_none();
    }
    let (mut goes_on, mut is_far) = (state.check.is_some(), false);
    if let Some(complete) = state.complete {
        let above = match found {
            Some(point) => point,
            None => {
                checked = true;
                below_the_lowest(store, &transaction).await?.unwrap_or(complete)
            }
        };
        let (up_to, waits) = waiting(store, &transaction, pace, above, complete).await?;
        found = Some(up_to);
        goes_on |= match waits {
            Some(is_old) => is_old && set_aside(store, &transaction, up_to, complete).await?,
            None => up_to < complete,
        };
        is_far = waits.is_none() && complete.saturating_sub(up_to) > pace.far;
    }
    let mut done = true;
    if found != point || checked || before != Some(state.text()?) {
        state.turn += 1;
        let after = state.text()?;
        let params = [
            (&found as _, Type::INT8),
            (&after as _, Type::TEXT),
            (&before as _, Type::TEXT),
            (&interventions as _, Type::INT8),
            (&sequence as _, Type::OID),
            (&file as _, Type::INT8),
            (&checked as _, Type::BOOL),
        ];
        done = !transaction.query_typed(&store.sql.read_point_raise, &params).await?.is_empty();
    }
    transaction.commit().await?;
    Ok(Raised { done, goes_on: done && goes_on, is_far })
}

impl State {
    fn text(&self) -> Result<String, Failure> {
        let text = serde_json::to_string(self);
        text.map_err(|error| Failure::Refused(StoreErrorKind::Unexpected, error.to_string()))
    }
}

/// Begins a check of the point or goes on with it, and returns the point, which is lower if a row waits below. No check is under way any
/// more when it has ended.
async fn check(
    store: &Inner,
    transaction: &Transaction<'_>,
    pace: Pace,
    state: &mut State,
    point: i64,
    interventions: i64,
) -> Result<i64, Failure> {
    let check = match state.check.take().filter(|check| check.interventions == interventions) {
        Some(check) => check,
        None => Check { up_to: below_the_lowest(store, transaction).await?.unwrap_or(point), interventions },
    };
    let (up_to, waits) = waiting(store, transaction, pace, check.up_to, point).await?;
    if waits.is_some() {
        return Ok(up_to);
    }
    state.check = (up_to < point).then_some(Check { up_to, ..check });
    Ok(point)
}

/// The number below all rows; none, if there are no rows.
async fn below_the_lowest(store: &Inner, transaction: &Transaction<'_>) -> Result<Option<i64>, Failure> {
    let rows = transaction.query_typed(&store.sql.read_point_lowest, &[]).await?;
    Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.map(|lowest| lowest - 1))
}

/// Looks for the first row above `above`, up to `last`, that waits for its first attempt. Returns the number up to which there is none,
/// and if a row follows, whether it has waited for long.
async fn waiting(
    store: &Inner,
    transaction: &Transaction<'_>,
    pace: Pace,
    mut above: i64,
    last: i64,
) -> Result<(i64, Option<bool>), Failure> {
    let began = Instant::now();
    while above < last {
        let up_to = above.saturating_add(WINDOW).min(last);
        let params = [(&above as _, Type::INT8), (&up_to as _, Type::INT8)];
        if let Some(first) = transaction.query_typed(&store.sql.read_point_next, &params).await?.first() {
            return Ok((first.try_get::<_, i64>(0)? - 1, Some(first.try_get(1)?)));
        }
        above = up_to;
        if began.elapsed() >= pace.slice {
            break;
        }
    }
    Ok((above, None))
}

/// Sets rows aside that have waited for long among many that were delivered. They are locked until the transaction ends, which therefore
/// does nothing more.
async fn set_aside(store: &Inner, transaction: &Transaction<'_>, above: i64, complete: i64) -> Result<bool, Failure> {
    let params = [(&above as _, Type::INT8), (&complete as _, Type::INT8), (&CROWD as _, Type::INT8)];
    let moved = transaction.query_typed_one(&store.sql.read_point_set_aside, &params).await?;
    Ok(moved.try_get::<_, i64>(0)? > 0)
}

#[cfg(test)]
mod tests {
    use pillarbox_core::store::Store as _;

    use super::*;
    use crate::plans::{Setting, execute, with_table};
    use crate::sql::qualified;

    const IMPATIENT: Pace =
        Pace { slice: Duration::ZERO, patience: Duration::ZERO, far: 2 * WINDOW, most: Duration::from_secs(3600) };

    async fn point(store: &Inner) -> Option<i64> {
        let session = store.sessions.session().await.expect("a session");
        let row = session.query(&store.sql.read_point, &[]).await.expect("reads");
        session.finish();
        row[0].get(0)
    }

    #[tokio::test]
    async fn what_is_far_is_passed_over_in_one_call_as_long_as_there_is_time() {
        with_table(Setting::WithStatistics, async |store| {
            let (inner, table) = (store.inner(), &store.info().table);
            let done = format!(
                "INSERT INTO {table} (event_id, event_type, payload, status, done_at)
                 SELECT gen_random_uuid(), 'order.placed', '{{}}', 1, now() FROM generate_series(1, 4 * {WINDOW})"
            );
            execute(store, &done).await;
            let partition = qualified(&inner.table, &inner.table.beside("partition"));
            let some_time_later = format!("UPDATE {partition} SET read_point_moved_at = NULL");
            let at_once = Pace { most: Duration::ZERO, ..IMPATIENT };
            assert!(raise_at(inner, at_once).await.expect("raises"));
            assert_eq!(point(inner).await, Some(WINDOW), "the time is up, and what was found is kept");
            execute(store, &some_time_later).await;
            let far = Pace { far: WINDOW, ..IMPATIENT };
            assert!(raise_at(inner, far).await.expect("raises"));
            assert_eq!(point(inner).await, Some(3 * WINDOW), "the rest is near");
            execute(store, &some_time_later).await;
            assert!(raise_at(inner, IMPATIENT).await.expect("raises"));
            assert_eq!(point(inner).await, Some(4 * WINDOW));
        })
        .await;
    }
}
