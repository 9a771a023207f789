use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{BegunAttempt, FailedAttempt};
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::positions::Positions;
use crate::rows::Rows;
use crate::session::Param;
use crate::store::Inner;

/// Records verdicts in one statement, which is one transaction and one round trip, and returns those that were refused.
pub(crate) async fn settle(
    store: &Inner,
    node: &NodeId,
    fence: Fence,
    verdicts: &[Verdict],
) -> Result<Vec<i64>, Failure> {
    if verdicts.is_empty() {
        return Ok(Vec::new());
    }
    let Batch { done, others, removed, positions } = Batch::of(verdicts);
    let node = node.as_str();
    let mut params: Vec<Param<'_>> = vec![(&node, Type::TEXT), (&store.durable_settles, Type::BOOL)];
    let (only_done, only_removed) = (
        others.rows.is_empty() && removed.rows.is_empty(),
        others.rows.is_empty() && done.is_empty() && removed.are_first(),
    );
    let alike = if only_done {
        done.alike()
    } else if only_removed {
        removed.rows.alike()
    } else {
        None
    };
    let sql = if let Some(rows) = &alike {
        rows.bind(&mut params);
        match (only_done, positions.is_empty()) {
            (true, true) => store.sql.settle_done.of(rows),
            (true, false) => store.sql.settle_done_as.of(rows),
            (false, _) => store.sql.settle_removed.of(rows),
        }
    } else {
        done.bind(&mut params);
        others.bind(&mut params);
        removed.bind(&mut params);
        params.push((&others.failures, Type::TEXT_ARRAY));
        if positions.is_empty() { &store.sql.settle_mixed } else { &store.sql.settle_mixed_as }
    };
    if !positions.is_empty() {
        positions.bind(&mut params);
    }

    let session = store.sessions.session().await?;
    let rows = session.query(sql.of(fence), &params).await?;
    session.finish();

    let applied: Vec<i64> = rows.first().map_or(Ok(Vec::new()), |row| row.try_get(0))?;
    if applied.len() == verdicts.len() {
        return Ok(Vec::new());
    }
    let applied: HashSet<i64> = applied.into_iter().collect();
    Ok(verdicts.iter().map(|verdict| verdict.row.seq).filter(|seq| !applied.contains(seq)).collect())
}

/// Announces that an attempt begins; false if that changed nothing.
pub(crate) async fn begin_attempt(
    store: &Inner,
    node: &NodeId,
    fence: Fence,
    attempt: &BegunAttempt,
) -> Result<bool, Failure> {
    let node = node.as_str();
    let (expected, attempts) = (count(attempt.expected.attempts), count(attempt.attempts));
    let replays = attempt.expected.replays.cast_signed();
    let (error, failure) = (attempt.error.as_deref().map(storable), attempt.error.as_deref().map(kept));
    let (event, handler) = (attempt.row.event_id.as_str(), attempt.row.handler.as_deref());
    let params: [Param<'_>; 9] = [
        (&node, Type::TEXT),
        (&attempt.row.seq, Type::INT8),
        (&expected, Type::INT4),
        (&attempts, Type::INT4),
        (&error, Type::TEXT),
        (&event, Type::TEXT),
        (&handler, Type::TEXT),
        (&replays, Type::INT4),
        (&failure, Type::TEXT),
    ];
    let session = store.sessions.session().await?;
    let begun = session.query(store.sql.begin_attempt.of(fence), &params).await?;
    session.finish();
    Ok(!begun.is_empty())
}

/// Verdicts grouped by the statement that records them. Each part ascends by `seq`, so that two calls lock the rows they
/// share in the same order.
#[derive(Debug, Default)]
struct Batch<'a> {
    /// Rows that succeeded at once and were never replayed: their numbers say everything.
    done: Rows<'a>,
    others: Columns<'a>,
    removed: Removals<'a>,
    /// Of rows among `done` and `others`.
    positions: Positions,
}

impl<'a> Batch<'a> {
    fn of(verdicts: &'a [Verdict]) -> Self {
        let mut ascending: Vec<&Verdict> = verdicts.iter().collect();
        ascending.sort_unstable_by_key(|verdict| verdict.row.seq);
        let mut batch = Self::default();
        for verdict in ascending {
            if let Change::DeliveredAs(position) = &verdict.change {
                batch.positions.push(verdict.row.seq, position);
            }
            match (&verdict.change, verdict.expected) {
                (Change::Done | Change::DeliveredAs(_), Expected::FIRST) => batch.done.push(&verdict.row),
                (Change::Remove, expected) => {
                    batch.removed.rows.push(&verdict.row);
                    batch.removed.expected.push(expected);
                }
                _ => batch.others.push(verdict),
            }
        }
        batch
    }
}

/// The states that rows must be in, column by column.
#[derive(Debug, Default)]
struct ExpectedStates {
    attempts: Vec<i32>,
    replays: Vec<i32>,
}

impl ExpectedStates {
    fn push(&mut self, expected: Expected) {
        self.attempts.push(count(expected.attempts));
        self.replays.push(expected.replays.cast_signed());
    }

    /// True if none has failed or was replayed before.
    fn are_first(&self) -> bool {
        self.attempts.iter().chain(&self.replays).all(|number| *number == 0)
    }

    fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        params.extend([(&self.attempts as _, Type::INT4_ARRAY), (&self.replays as _, Type::INT4_ARRAY)]);
    }
}

/// Rows that are not kept, column by column.
#[derive(Debug, Default)]
struct Removals<'a> {
    rows: Rows<'a>,
    expected: ExpectedStates,
}

impl Removals<'_> {
    /// True if none has failed or was replayed before, and there are any.
    fn are_first(&self) -> bool {
        !self.rows.is_empty() && self.expected.are_first()
    }

    fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        self.rows.bind(params);
        self.expected.bind(params);
    }
}

/// The other verdicts, column by column.
#[derive(Debug, Default)]
struct Columns<'a> {
    rows: Rows<'a>,
    expected: ExpectedStates,
    states: Vec<i16>,
    attempts: Vec<i32>,
    /// Of retries; one that has none is held.
    delays: Vec<Option<i64>>,
    errors: Vec<Option<Cow<'a, str>>>,
    /// The errors that rows keep of a failed attempt.
    failures: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, verdict: &'a Verdict) {
        let (attempts, delay, error) = match &verdict.change {
            Change::Done | Change::DeliveredAs(_) | Change::Remove => (verdict.expected.attempts, None, None),
            Change::Retry { attempts, delay, error } => (*attempts, Some(*delay), error.as_deref()),
            Change::RetryInPlace { attempts, error }
            | Change::Rescued { attempts, error }
            | Change::Dead { attempts, error } => (*attempts, None, Some(&**error)),
        };
        self.rows.push(&verdict.row);
        self.expected.push(verdict.expected);
        self.states.push(verdict.change.status().code());
        self.attempts.push(count(attempts));
        self.delays.push(delay.map(micros));
        self.errors.push(error.map(storable));
        self.failures.push(verdict.failure().map(|(_, error)| kept(error)));
    }

    fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        self.rows.bind(params);
        self.expected.bind(params);
        params.extend([
            (&self.states as _, Type::INT2_ARRAY),
            (&self.attempts as _, Type::INT4_ARRAY),
            (&self.delays as _, Type::INT8_ARRAY),
            (&self.errors as _, Type::TEXT_ARRAY),
        ]);
    }
}

fn count(attempts: u32) -> i32 {
    i32::try_from(attempts).unwrap_or(i32::MAX)
}

/// A duration for SQL, at most a century: longer ones could leave the range of the database's times, and below that the
/// multiplication of an interval is exact.
pub(crate) fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 86_400 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}

/// Texts arrive cleaned. A NUL that slipped through would make the whole batch unrecordable, so none gets through here.
fn storable(error: &str) -> Cow<'_, str> {
    if error.contains('\0') { error.replace('\0', "\\u{0}").into() } else { error.into() }
}

/// The beginning of an error, which a row keeps of a failed attempt. It is cut here: where a database is encoded in SQL_ASCII, the server
/// counts bytes, and would cut a character in two.
fn kept(error: &str) -> Cow<'_, str> {
    let end = error.char_indices().nth(FailedAttempt::ERROR_CHARACTERS).map_or(error.len(), |(end, _)| end);
    storable(&error[..end])
}
