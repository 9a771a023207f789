use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{Fetch, Fetched};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::row::{self, Micros};
use crate::scope::Bounds;
use crate::session::Param;
use crate::store::Inner;
use crate::types::{names, without};

/// Reads ready rows, due rows and the next due time in one round trip.
///
/// Rows of one kind that are too large together are not read to their end: the connection is given up, and the call begins anew
/// with as many of that kind as fit. So a limit of bytes costs nothing where it is not reached.
pub(crate) async fn fetch(store: &Inner, fetch: &Fetch) -> Result<Fetched, Failure> {
    let limit = fetch.limit;
    let mut most = Most { ready: limit, due: limit };
    let found = loop {
        match read(store, fetch, most).await? {
            Ok(found) => break found,
            Err(fits) => most = fits,
        }
    };
    let rows = Vec::with_capacity(found.len().min(limit));
    let mut fetched = Fetched { rows, cut: most.ready < limit || most.due < limit, ..Fetched::default() };
    for row in &found {
        match row.try_get(row::SEQ)? {
            // Ready rows come first, so what exceeds the limit are the last of the due ones.
            Some(_) if fetched.rows.len() == limit => {}
            Some(seq) => fetched.rows.push(row::decode(seq, row)?),
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
    if fetched.rows.len() >= limit || fetched.cut {
        fetched.next_due = None;
    }
    Ok(fetched)
}

/// The rows of each kind that a fetch may bring.
#[derive(Debug, Clone, Copy)]
struct Most {
    ready: usize,
    due: usize,
}

/// Reads rows; or says how many fit, if those of one kind exceed the bytes that the fetch asks for.
async fn read(store: &Inner, fetch: &Fetch, most: Most) -> Result<Result<Vec<Row>, Most>, Failure> {
    let (above, limit, share) = (from(fetch.above), size(fetch.limit), size(share_of_due(fetch.limit)));
    let (most_due, most_ready) = (size(most.due), size(most.ready));
    let mut params: Vec<Param<'_>> = vec![
        (&above, Type::INT8),
        (&fetch.exclude, Type::INT8_ARRAY),
        (&limit, Type::INT8),
        (&share, Type::INT8),
        (&most_due, Type::INT8),
        (&most_ready, Type::INT8),
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
    let (mut ready, mut due, mut fits) = (Kept::default(), Kept::default(), most);
    let is_full = |row: &Row| {
        if row.try_get::<_, Option<i64>>(row::SEQ)?.is_none() {
            return Ok(false);
        }
        let is_due = row::due_at(row)?.is_some();
        let (kept, fits) = if is_due { (&mut due, &mut fits.due) } else { (&mut ready, &mut fits.ready) };
        if kept.bytes >= fetch.max_bytes {
            *fits = kept.rows;
            return Ok(true);
        }
        kept.rows += 1;
        kept.bytes += row::payload_bytes(row)?;
        Ok(false)
    };
    let mut session = store.sessions.session().await?;
    // In a scope the look into the index of heads costs the planner's guess so much that it would have the statement compiled.
    let Some(rows) = session.query_until(&sql, &params, bounds.is_some(), is_full).await? else {
        return Ok(Err(fits));
    };
    session.finish();
    Ok(Ok(rows))
}

/// The rows of one kind that were read.
#[derive(Debug, Default)]
struct Kept {
    rows: usize,
    bytes: usize,
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
