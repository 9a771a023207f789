//! The read point: the number at which reading from the lowest pending row begins.

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Proof, Writers};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_postgres::types::{Oid, Type};
use tokio_postgres::{Error, Row};

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
    /// The time after which even a far rest is left to the next call: far below the limit of a call, whose end would cost a connection and
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
    /// Another number for each state, so that a node that has seen an earlier one changes nothing. Tables have it under its first name.
    #[serde(rename = "turn")]
    revision: u64,
    /// The last number that the sequence had given, at the last look by a user that may see it.
    #[serde(default)]
    last: Option<i64>,
    /// The number of interventions when a check found a row that none of them explains, by a user that may not see the last number. Until there
    /// are more the point is not raised.
    #[serde(default)]
    in_doubt: Option<i64>,
}

/// A check that no row below the point waits for its first attempt: only a mistake puts one there.
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
    /// True if too much is left to leave it to the next call.
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
    // Each reader passes over the rows delivered above the point: in a restored table, over many millions of rows until this is done.
    while last.goes_on && began.elapsed() < if last.is_far { pace.most } else { pace.patience } {
        last = raise_once(store, pace, true).await?;
    }
    Ok(first.done)
}

/// Raises it in one transaction: so the proof that it rests on, and the look that completes the proof, are of the same server and of
/// the same history, also behind a pooler or a proxy.
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
    let row = ReadPointRow::decode(&transaction.query_typed_one(&store.sql.read_point, &[]).await?)?;
    if row.was_moved_just_now && !again {
        return Ok(Raised { done: false, goes_on: false, is_far: false });
    }
    let (mut point, mut state) = row.known();
    if !row.numbers_are_in_order {
        tracing::debug!(table = %store.table, "the numbers of the table come in no order, so it is read from its beginning");
        let done = point.is_none() || row.change(store, &transaction, None, state.forgotten(), false).await?;
        transaction.commit().await?;
        return Ok(Raised { done, goes_on: false, is_far: false });
    }
    let (writers, last) = writers_of(store, &transaction).await?;
    let was_set_back = state.is_above(point, last);
    if was_set_back {
        (state, point) = (state.forgotten(), None);
    }
    state.learn(writers, last, row.interventions);

    let (mut found, mut checked) = (point, false);
    if let Some(point) = point
        && (!row.heard_of_all || row.is_to_be_checked || state.check.is_some())
    {
        let proven = check(store, &transaction, pace, &mut state, point, row.interventions).await?;
        if proven < point && row.heard_of_all && last.is_none() {
            state.in_doubt = Some(row.interventions);
            tracing::warn!(
                table = %store.table, seq = proven + 1,
                "an event waited below the read point, which is not raised any more: its row was changed by hand, or numbers are given below \
                 rows that are there. Set the sequence of `seq` to the highest `seq`, and let this user see it by `GRANT SELECT ON SEQUENCE`; see \
                 docs/sql-contract.md"
            );
        }
        found = Some(proven);
        checked = state.check.is_none();
    }
    let (mut goes_on, mut is_far) = (state.check.is_some(), false);
    if let Some(complete) = state.complete.filter(|_| state.in_doubt.is_none()) {
        let above = match found {
            Some(point) => point,
            None => {
                checked = true;
                // All rows may stand above: those of an open transaction, and those that were copied with numbers still to be given.
                below_the_lowest(store, &transaction).await?.map_or(complete, |below| below.min(complete))
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
    if was_set_back || found != point || checked || row.before != Some(state.text()?) {
        done = row.change(store, &transaction, found, state, checked).await?;
    }
    transaction.commit().await?;
    Ok(Raised { done, goes_on: done && goes_on, is_far })
}

/// The row of the read point, as `read_point.sql` reads it.
struct ReadPointRow {
    point: Option<i64>,
    /// The text of the [`State`].
    before: Option<String>,
    interventions: i64,
    /// True if the point accounts for all interventions.
    heard_of_all: bool,
    /// True if the point and its state are of the table's present numbers.
    is_of_these_numbers: bool,
    was_moved_just_now: bool,
    is_to_be_checked: bool,
    sequence: Option<Oid>,
    numbers: Option<i64>,
    numbers_are_in_order: bool,
}

impl ReadPointRow {
    fn decode(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            point: row.try_get("read_point")?,
            before: row.try_get("read_point_state")?,
            interventions: row.try_get("interventions")?,
            heard_of_all: row.try_get("heard_of_all")?,
            is_of_these_numbers: row.try_get("is_of_these_numbers")?,
            was_moved_just_now: row.try_get("was_moved_just_now")?,
            is_to_be_checked: row.try_get("is_to_be_checked")?,
            sequence: row.try_get("sequence")?,
            numbers: row.try_get("numbers")?,
            numbers_are_in_order: row.try_get("numbers_are_in_order")?,
        })
    }

    /// The point and its state; nothing if they are of other numbers.
    fn known(&self) -> (Option<i64>, State) {
        let before = self.before.as_deref().filter(|_| self.is_of_these_numbers);
        let state = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        (self.point.filter(|_| self.is_of_these_numbers), state)
    }

    /// Puts a point and its state in the place of this row, with the interventions and the time if the point was `checked`. False if
    /// somebody else was first.
    async fn change(
        &self,
        store: &Inner,
        transaction: &Transaction<'_>,
        point: Option<i64>,
        mut state: State,
        checked: bool,
    ) -> Result<bool, Failure> {
        state.revision += 1;
        let after = state.text()?;
        let params = [
            (&point as _, Type::INT8),
            (&after as _, Type::TEXT),
            (&self.before as _, Type::TEXT),
            (&self.interventions as _, Type::INT8),
            (&self.sequence as _, Type::OID),
            (&self.numbers as _, Type::INT8),
            (&checked as _, Type::BOOL),
        ];
        Ok(!transaction.query_typed(&store.sql.read_point_raise, &params).await?.is_empty())
    }
}

impl State {
    /// True if the sequence stands below what is known of its numbers: it was set back, and gives them again.
    fn is_above(&self, point: Option<i64>, last: Option<i64>) -> bool {
        last.is_some() && self.last.max(self.complete).max(point) > last
    }

    /// The state of numbers of which nothing is known.
    fn forgotten(&self) -> Self {
        Self { revision: self.revision, ..Self::default() }
    }

    /// Takes in a look at the writers and the last number that was given.
    fn learn(&mut self, writers: Writers, last: Option<i64>, interventions: i64) {
        if self.last.is_none() && last.is_some() {
            // It may have been begun above that number.
            self.next = None;
        }
        self.last = last.or(self.last);
        self.in_doubt = self.in_doubt.filter(|at| last.is_none() && *at == interventions);
        self.complete = Proof::advance(&mut self.next, writers).max(self.complete);
    }

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
/// and if a row follows, true if it has waited for long.
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

    /// Nodes of two releases read each other's state.
    #[test]
    fn the_state_in_the_table_keeps_its_keys() {
        let text = State { check: Some(Check { up_to: 1, interventions: 2 }), ..State::default() }.text();
        let kept = r#"{"complete":null,"next":null,"check":{"up_to":1,"interventions":2},"turn":0,"last":null,"in_doubt":null}"#;
        assert_eq!(text.expect("is written"), kept);
    }

    async fn point(store: &Inner) -> Option<i64> {
        let session = store.sessions.session().await.expect("a session");
        let row = session.query(&store.sql.read_point, &[]).await.expect("reads");
        session.finish();
        row[0].get(0)
    }

    #[tokio::test]
    async fn long_runs_of_delivered_rows_are_passed_over_in_one_call_while_there_is_time() {
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
