use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{Fetch, Fetched};
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::row::{self, Micros};
use crate::scope::Bounds;
use crate::session::Param;
use crate::store::Inner;
use crate::types::{names, without};

/// Reads ready rows, due rows and the next due time in one round trip.
pub(crate) async fn fetch(store: &Inner, fetch: &Fetch) -> Result<Fetched, Failure> {
    let (above, limit, share) = (from(fetch.above), size(fetch.limit), size(share_of_due(fetch.limit)));
    let max_bytes = size(fetch.max_bytes);
    let mut params: Vec<Param<'_>> = vec![
        (&above, Type::INT8),
        (&fetch.exclude, Type::INT8_ARRAY),
        (&limit, Type::INT8),
        (&share, Type::INT8),
        (&max_bytes, Type::INT8),
    ];
    let bounds = fetch.scope.as_ref().map(Bounds::of);
    if let Some(bounds) = &bounds {
        bounds.bind(&mut params);
    }
    let types = names(&fetch.without_types);
    let sql = without(store.sql.fetch.of(fetch.scope.as_ref()), &fetch.without_types, params.len() + 1);
    if !types.is_empty() {
        params.push((&types, Type::TEXT_ARRAY));
    }
    let mut session = store.sessions.session().await?;
    let found = if bounds.is_some() {
        // The look into the index of heads costs the planner's guess so much that it would have the statement compiled.
        session.query_by_index(&sql, &params).await?
    } else {
        session.query(&sql, &params).await?
    };
    session.finish();

    let rows = Vec::with_capacity(found.len().min(fetch.limit));
    let mut fetched = Fetched { rows, ..Fetched::default() };
    for row in &found {
        match row.try_get(row::SEQ)? {
            // Ready rows come first, so what exceeds the limit are the last of the due ones.
            Some(_) if fetched.rows.len() == fetch.limit => {}
            Some(seq) => {
                fetched.cut |= row.try_get::<_, bool>(row::REACHES_THE_LIMIT)?;
                fetched.rows.push(row::decode(seq, row)?);
            }
            None => match row.try_get::<_, Option<Micros>>(row::AVAILABLE_AT)? {
                Some(due) => fetched.next_due = Some(wait(due, row.try_get(row::CREATED_AT)?)),
                None => {
                    fetched.interventions = row.try_get::<_, &str>(row::LOCKED_BY)?.parse().unwrap_or_default();
                    fetched.heads = row.try_get::<_, i32>(row::ATTEMPTS)? == 1;
                    fetched.lease = row.try_get::<_, Option<Micros>>(row::CREATED_AT)?.map(Micros::mark);
                }
            },
        }
    }
    if fetched.rows.len() >= fetch.limit || fetched.cut {
        fetched.next_due = None;
    }
    Ok(fetched)
}

/// The rows with a due time among `limit` where both kinds abound: a third, so that a storm of retries leaves most of the room
/// to new events. A limit of one goes to them, since they run out sooner.
pub(crate) fn share_of_due(limit: usize) -> usize {
    limit.div_ceil(3)
}

/// Zero means from the lowest row, wherever that is.
pub(crate) fn from(above: i64) -> i64 {
    if above == 0 { i64::MIN } else { above }
}

/// A number of rows or bytes for SQL.
pub(crate) fn size(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn wait(due: Micros, now: Micros) -> Duration {
    Timestamp::from(due).since(now.into())
}
