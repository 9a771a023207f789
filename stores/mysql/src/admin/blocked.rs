use mysql_async::Row;
use pillarbox_core::store::Blocked;

use crate::answer::{count, int, is_true, optional_int, owned};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// A page of the events that later ones of their key wait behind.
pub(super) async fn list(store: &Inner, above: i64, limit: usize) -> Result<Vec<Blocked>, Failure> {
    let mut session = store.sessions.session().await?;
    let answers = session.run(fill(&store.sql.lowest_head, &[("above", &Literal::int(above))])).await?;
    // Mostly there is none, and no reason to look at the rows that are pending.
    let Some(lowest) = answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))? else {
        session.finish();
        return Ok(Vec::new());
    };
    let most = i64::try_from(Blocked::COUNTED_UP_TO).unwrap_or(i64::MAX);
    let (lowest, limit, most) = (Literal::int(lowest), Literal::count(limit), Literal::int(most));
    let values = [("lowest", &lowest), ("limit", &limit), ("most", &most)];
    let answers = session.run(fill(&store.sql.blocked, &values)).await?;
    session.finish();
    let head = |row: &Row| {
        let dead = is_true(row, 5)?;
        Ok(Blocked {
            seq: int(row, 0)?,
            event_id: owned(row, 1)?.unwrap_or_default(),
            event_type: owned(row, 2)?.unwrap_or_default(),
            key: owned(row, 3)?.unwrap_or_default(),
            handler: owned(row, 4)?,
            dead,
            attempts: i32::try_from(int(row, 6)?).unwrap_or(i32::MAX),
            due_in: optional_int(row, 7)?.filter(|left| !dead && *left > 0).map(wait),
            last_error: owned(row, 8)?,
            waiting: count(row, 9)?,
        })
    };
    answers.rows(0).iter().map(head).collect()
}

/// The event that a pending one waits behind.
pub(super) async fn head_of(store: &Inner, seq: i64) -> Result<Option<i64>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.head_of, &[("seq", &Literal::int(seq))])).await?;
    answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))
}
