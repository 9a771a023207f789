//! The read point: where reading from the lowest pending row begins.

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::Proof;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::order::writers_of;
use crate::session::BY_INDEX;
use crate::store::Inner;

/// Numbers that one statement looks at, so that none takes long.
const WINDOW: i64 = 1_000_000;
/// Rows among which a few that wait stand in the way of the point.
const CROWD: i64 = 20_000;
/// The time after which the rest is left to the next call: it goes on where this one ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Raises the read point, in one transaction: so the proof that it rests on, and the look that completes the proof, are of the same
/// server and of the same history, whatever stands between this process and the server.
/// False if that was done a moment ago.
pub(crate) async fn raise(store: &Inner) -> Result<bool, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    // A point that a crash of the server takes back is a lower one.
    transaction.batch_execute(&format!("{BY_INDEX}; SET LOCAL synchronous_commit = off")).await?;
    let raised = raise_in(store, &transaction).await?;
    transaction.commit().await?;
    session.finish();
    Ok(raised)
}

async fn raise_in(store: &Inner, transaction: &Transaction<'_>) -> Result<bool, Failure> {
    let row = transaction.query_typed_one(&store.sql.read_point, &[]).await?;
    let (point, used): (Option<i64>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let interventions: i64 = row.try_get(2)?;
    let (was_moved_just_now, is_known): (bool, bool) = (row.try_get(3)?, row.try_get(4)?);
    let (numbers_are_in_order, lowest): (bool, Option<i64>) = (row.try_get(5)?, row.try_get(6)?);
    if was_moved_just_now || !numbers_are_in_order {
        return Ok(!was_moved_just_now);
    }
    let mut proof = used.as_deref().and_then(|text| serde_json::from_str::<Proof>(text).ok());
    let complete = Proof::advance(&mut proof, writers_of(store, transaction).await?);
    let known = point.filter(|_| is_known);
    // What is not known is looked at from the first row on, up to where the table is or was complete.
    let above = known.or(lowest.map(|seq| seq - 1));
    let found = match complete.or(point.filter(|_| !is_known)) {
        Some(complete) => Some(waiting_above(store, transaction, above.unwrap_or(complete), complete).await?),
        None => None,
    };
    let next = proof.as_ref().map(serde_json::to_string).transpose();
    let next = next.map_err(|error| Failure::Refused(StoreErrorKind::Unexpected, error.to_string()))?;
    if found == point && is_known && next == used {
        return Ok(true);
    }
    let checked = known.is_none() && found.is_some();
    let params = [
        (&found as _, Type::INT8),
        (&next as _, Type::TEXT),
        (&used as _, Type::TEXT),
        (&interventions as _, Type::INT8),
        (&checked as _, Type::BOOL),
    ];
    let raised = transaction.query_typed(&store.sql.read_point_raise, &params).await?;
    Ok(!raised.is_empty())
}

/// The number below the first row above `above` that waits for its first attempt, or `complete` if there is none up to there. A few
/// that have waited for long are set aside on the way.
async fn waiting_above(
    store: &Inner,
    transaction: &Transaction<'_>,
    mut above: i64,
    complete: i64,
) -> Result<i64, Failure> {
    let began = Instant::now();
    while above < complete && began.elapsed() < PATIENCE {
        let up_to = above.saturating_add(WINDOW).min(complete);
        let params = [(&above as _, Type::INT8), (&up_to as _, Type::INT8)];
        let Some(first) = transaction.query_typed(&store.sql.read_point_next, &params).await?.into_iter().next() else {
            above = up_to;
            continue;
        };
        above = first.try_get::<_, i64>(0)? - 1;
        let (is_old, rows): (bool, i64) = (first.try_get(1)?, CROWD);
        let params = [(&above as _, Type::INT8), (&complete as _, Type::INT8), (&rows as _, Type::INT8)];
        if !is_old
            || transaction.query_typed_one(&store.sql.read_point_set_aside, &params).await?.try_get::<_, i64>(0)? == 0
        {
            break;
        }
    }
    Ok(above)
}
