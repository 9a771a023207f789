use std::collections::HashMap;

use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, RowId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::fetch::{from, share_of_due, size, wait};
use crate::row::{self, Micros};
use crate::rows::Rows;
use crate::session::Param;
use crate::store::Inner;
use crate::types::LeftOut;

/// Takes rows that are due and free, and asks for the next due time, in one statement.
pub(crate) async fn claim(store: &Inner, node: &NodeId, fetch: &Fetch) -> Result<Fetched, Failure> {
    let (above, limit, share) = (from(fetch.above), size(fetch.limit), size(share_of_due(fetch.limit)));
    let (node, max_bytes) = (node.as_str(), size(fetch.max_bytes));
    let mut params: Vec<Param<'_>> = vec![
        (&node, Type::TEXT),
        (&above, Type::INT8),
        (&fetch.exclude, Type::INT8_ARRAY),
        (&limit, Type::INT8),
        (&share, Type::INT8),
        (&max_bytes, Type::INT8),
    ];
    let left_out = LeftOut::by(fetch);
    let sql = left_out.of(&store.sql.claim, &mut params);
    let (mut held_before, mut next_due, mut truncated) = (HashMap::new(), None, false);
    let take = |row: Row| {
        let (seq, event_id): (Option<i64>, Option<&str>) = (row.try_get(row::SEQ)?, row.try_get(row::EVENT_ID)?);
        match (seq, event_id) {
            (Some(seq), Some(_)) => return Ok(Some(Some((row::due_at(&row)?, row::decode(seq, &row)?)))),
            (Some(seq), None) => {
                held_before.insert(seq, Box::from(row.try_get::<_, &str>(row::LOCKED_BY)?));
            }
            (None, _) => match row.try_get::<_, Option<Micros>>(row::AVAILABLE_AT)? {
                Some(due) => next_due = Some(wait(due, row.try_get(row::CREATED_AT)?)),
                None => truncated = true,
            },
        }
        Ok(Some(None))
    };
    let mut session = store.sessions.session().await?;
    let found = session.query_until(&sql, &params, false, take).await?.unwrap_or_default();
    session.finish();

    let mut taken: Vec<(Option<Micros>, FetchedRow)> = found.into_iter().flatten().collect();
    // An UPDATE returns rows in no order. Rows without a due time come first, as None does.
    taken.sort_unstable_by_key(|(available_at, row)| (*available_at, row.seq()));
    let rows = taken.into_iter().map(|(_, mut row)| {
        if let FetchedRow::Row(row) = &mut row {
            row.locked_by = held_before.remove(&row.seq);
        }
        row
    });
    let rows: Vec<_> = rows.collect();
    let next_due = next_due.filter(|_| rows.len() < fetch.limit && !truncated);
    Ok(Fetched { rows, truncated, next_due, ..Fetched::default() })
}

/// Gives rows back that the node holds.
pub(crate) async fn release(store: &Inner, node: &NodeId, rows: &[RowId]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let (node, rows) = (node.as_str(), Rows::ascending(rows));
    let mut params: Vec<Param<'_>> = vec![(&node, Type::TEXT)];
    rows.bind(&mut params);
    let session = store.sessions.session().await?;
    session.query(&store.sql.release, &params).await?;
    session.finish();
    Ok(())
}
