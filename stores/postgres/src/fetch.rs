use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{Fetch, Fetched};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use crate::error::Failure;
use crate::row::{self, Micros};
use crate::scope::Bounds;
use crate::session::Param;
use crate::store::Inner;
use crate::types::LeftOut;

/// Reads ready rows, due rows and the next due time in one round trip.
///
/// Rows of one kind that are too large together are not read to their end: the connection is given up, and the call begins anew
/// with as many of that kind as fit. So a limit of bytes costs nothing where it is not reached.
pub(crate) async fn fetch(store: &Inner, fetch: &Fetch) -> Result<Fetched, Failure> {
    let limit = fetch.limit;
    let mut most = [limit; KINDS];
    let found = loop {
        match read(store, fetch, most).await? {
            Ok(found) => break found,
            Err(fits) => most = fits,
        }
    };
    let mut fetched = Fetched { cut: most.iter().any(|most| *most < limit), ..Fetched::default() };
    let (mut ready, mut due) = (Vec::with_capacity(found.len().min(limit)), Vec::new());
    for row in &found {
        match row.try_get::<_, Option<i64>>(row::SEQ)? {
            Some(seq) if kind(row)? == DUE => due.push((seq, row)),
            Some(seq) => ready.push((seq, row)),
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
    let room = limit - due.len().min(share_of_due(limit));
    fetched.cut |= in_order(&mut ready, most, room, fetch)?;
    due.truncate(limit - ready.len());
    let rows = ready.into_iter().chain(due).map(|(seq, row)| row::decode(seq, row));
    fetched.rows = rows.collect::<Result<_, _>>()?;
    if fetched.rows.len() >= limit || fetched.cut {
        fetched.next_due = None;
    }
    Ok(fetched)
}

/// Puts rows that came ascending by `seq` twice, those that are set aside and the others, into one order without a gap, and leaves as
/// many as there is room for; true if bytes are what there is no room for. Of a kind of which no more than `most` could be read, there
/// may be more behind its last row.
fn in_order(ready: &mut Vec<(i64, &Row)>, most: [usize; KINDS], room: usize, fetch: &Fetch) -> Result<bool, Error> {
    let mut read = [0; KINDS];
    let mut complete = i64::MAX;
    for (seq, row) in &*ready {
        let kind = kind(row)?;
        read[kind] += 1;
        if read[kind] == most[kind] && most[kind] < fetch.limit {
            complete = complete.min(*seq);
        }
    }
    if read[SET_ASIDE] == 0 && most[PLAIN] == fetch.limit {
        ready.truncate(room);
        return Ok(false);
    }
    ready.retain(|(seq, _)| *seq <= complete);
    ready.sort_unstable_by_key(|(seq, _)| *seq);
    ready.truncate(room);
    let mut bytes = 0;
    for (place, (_, row)) in ready.iter().enumerate() {
        if bytes >= fetch.max_bytes {
            ready.truncate(place);
            return Ok(true);
        }
        bytes += row::content_bytes(row)?;
    }
    Ok(false)
}

/// The kinds of rows, each of which a fetch bounds by itself: in the place of their `seq`, set aside there, with a due time.
const KINDS: usize = 3;
const PLAIN: usize = 0;
const SET_ASIDE: usize = 1;
const DUE: usize = 2;

/// The kind of a row.
fn kind(row: &Row) -> Result<usize, Error> {
    Ok(match row.try_get::<_, Option<i16>>(row::ASIDE)? {
        None => PLAIN,
        Some(_) if row::due_at(row)?.is_some() => DUE,
        Some(_) => SET_ASIDE,
    })
}

/// Reads rows; or says how many fit, if those of one kind exceed the bytes that the fetch asks for.
async fn read(store: &Inner, fetch: &Fetch, most: [usize; KINDS]) -> Result<Result<Vec<Row>, [usize; KINDS]>, Failure> {
    let (above, limit, share) = (from(fetch.above), size(fetch.limit), size(share_of_due(fetch.limit)));
    let (most_due, most_plain, most_aside) = (size(most[DUE]), size(most[PLAIN]), size(most[SET_ASIDE]));
    let mut params: Vec<Param<'_>> = vec![
        (&above, Type::INT8),
        (&fetch.exclude, Type::INT8_ARRAY),
        (&limit, Type::INT8),
        (&share, Type::INT8),
        (&most_due, Type::INT8),
        (&most_plain, Type::INT8),
        (&most_aside, Type::INT8),
    ];
    let bounds = fetch.scope.as_ref().map(Bounds::of);
    if let Some(bounds) = &bounds {
        bounds.bind(&mut params);
    }
    let left_out = LeftOut::by(fetch);
    let sql = left_out.of(store.sql.fetch.of(fetch.scope.as_ref()), &mut params);
    let (mut rows, mut bytes, mut fits) = ([0; KINDS], [0; KINDS], most);
    let is_full = |row: &Row| {
        if row.try_get::<_, Option<i64>>(row::SEQ)?.is_none() {
            return Ok(false);
        }
        let kind = kind(row)?;
        if bytes[kind] >= fetch.max_bytes {
            fits[kind] = rows[kind];
            return Ok(true);
        }
        rows[kind] += 1;
        bytes[kind] += row::content_bytes(row)?;
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
