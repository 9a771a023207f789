use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::LeaseMark;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow};
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
    let answer = loop {
        match read(store, fetch, most).await? {
            Ok(answer) => break answer,
            Err(fits) => most = fits,
        }
    };
    let mut fetched = Fetched { truncated: most.iter().any(|most| *most < limit), ..Fetched::default() };
    let (mut ready, mut due) = (Vec::with_capacity(answer.len()), Vec::new());
    for line in answer {
        match line {
            Line::Row(row) if row.kind == DUE => due.push(row),
            Line::Row(row) => ready.push(row),
            Line::NextDue(delay) => fetched.next_due = Some(delay),
            Line::ScopeState { interventions, heads, lease } => {
                fetched.interventions = interventions;
                fetched.has_heads = heads;
                fetched.lease = lease;
            }
        }
    }
    let room = limit - due.len().min(share_of_due(limit));
    fetched.truncated |= in_order(&mut ready, most, room, fetch);
    due.truncate(limit - ready.len());
    fetched.rows = ready.into_iter().chain(due).map(|read| read.row).collect();
    if fetched.rows.len() >= limit || fetched.truncated {
        fetched.next_due = None;
    }
    Ok(fetched)
}

/// Puts rows that came ascending by `seq` twice, those that are set aside and the others, into one order without a gap, and leaves as
/// many as there is room for; true if bytes are what there is no room for. Of a kind of which no more than `most` could be read, there
/// may be more behind its last row.
fn in_order(ready: &mut Vec<ReadRow>, most: [usize; KINDS], room: usize, fetch: &Fetch) -> bool {
    let mut read = [0; KINDS];
    let mut complete = i64::MAX;
    for row in &*ready {
        read[row.kind] += 1;
        if read[row.kind] == most[row.kind] && most[row.kind] < fetch.limit {
            complete = complete.min(row.row.seq());
        }
    }
    if read[SET_ASIDE] == 0 && most[PLAIN] == fetch.limit {
        ready.truncate(room);
        return false;
    }
    ready.retain(|row| row.row.seq() <= complete);
    ready.sort_unstable_by_key(|row| row.row.seq());
    ready.truncate(room);
    let mut bytes = 0;
    for (place, row) in ready.iter().enumerate() {
        if bytes >= fetch.max_bytes {
            ready.truncate(place);
            return true;
        }
        bytes += row.bytes;
    }
    false
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

/// A line of the answer to a fetch.
enum Line {
    Row(ReadRow),
    /// The time until the next row becomes due.
    NextDue(Duration),
    /// The counters and lease of a scoped fetch.
    ScopeState {
        interventions: i64,
        heads: bool,
        lease: Option<LeaseMark>,
    },
}

struct ReadRow {
    kind: usize,
    /// The bytes of its content, as they came.
    bytes: usize,
    row: FetchedRow,
}

impl Line {
    /// The line that has no `seq`.
    fn without_row(row: &Row) -> Result<Self, Error> {
        if let Some(due) = row.try_get::<_, Option<Micros>>(row::AVAILABLE_AT)? {
            return Ok(Self::NextDue(wait(due, row.try_get(row::CREATED_AT)?)));
        }
        Ok(Self::ScopeState {
            interventions: row.try_get::<_, &str>(row::LOCKED_BY)?.parse().unwrap_or_default(),
            heads: row.try_get::<_, i32>(row::ATTEMPTS)? == 1,
            lease: row.try_get::<_, Option<Micros>>(row::CREATED_AT)?.map(Micros::mark),
        })
    }
}

/// Reads rows; or says how many fit, if those of one kind exceed the bytes that the fetch asks for.
async fn read(
    store: &Inner,
    fetch: &Fetch,
    most: [usize; KINDS],
) -> Result<Result<Vec<Line>, [usize; KINDS]>, Failure> {
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
    let take = |row: Row| {
        let Some(seq) = row.try_get::<_, Option<i64>>(row::SEQ)? else { return Line::without_row(&row).map(Some) };
        let (kind, content) = (kind(&row)?, row::content_bytes(&row)?);
        if bytes[kind] >= fetch.max_bytes {
            fits[kind] = rows[kind];
            return Ok(None);
        }
        rows[kind] += 1;
        bytes[kind] += content;
        Ok(Some(Line::Row(ReadRow { kind, bytes: content, row: row::decode(seq, &row)? })))
    };
    let mut session = store.sessions.session().await?;
    // In a scope the look into the index of heads costs the planner's guess so much that it would have the statement compiled.
    let Some(lines) = session.query_until(&sql, &params, bounds.is_some(), take).await? else {
        return Ok(Err(fits));
    };
    session.finish();
    Ok(Ok(lines))
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
