use std::error::Error;

use bytes::Bytes;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, GLOBAL_AGGREGATE, Headers, Payload};
use pillarbox_core::ownership::LeaseMark;
use pillarbox_core::row::Status;
use pillarbox_core::store::{BrokenRow, FetchedRow, OrderKey, Row};
use tokio_postgres::types::{FromSql, Type, accepts};

// The columns of `fetch.sql` and `claim.sql` by position: a look-up by name would compare strings for every value of every row.
pub(crate) const SEQ: usize = 0;
pub(crate) const EVENT_ID: usize = 1;
const EVENT_TYPE: usize = 2;
const AGGREGATE_TYPE: usize = 3;
const AGGREGATE_ID: usize = 4;
const TENANT_ID: usize = 5;
const ORDERING_KEY: usize = 6;
const PAYLOAD: usize = 7;
const PAYLOAD_BYTES: usize = 8;
const CONTENT_TYPE: usize = 9;
const HEADERS: usize = 10;
pub(crate) const ATTEMPTS: usize = 11;
pub(crate) const AVAILABLE_AT: usize = 12;
const OCCURRED_AT: usize = 13;
pub(crate) const CREATED_AT: usize = 14;
const STATUS: usize = 15;
const PARTITION: usize = 16;
const HANDLER: usize = 17;
pub(crate) const LOCKED_BY: usize = 18;

/// Reads a row. What makes no event is handed over as broken, so that it does not stop its neighbours.
pub(crate) fn decode(seq: i64, row: &tokio_postgres::Row) -> Result<FetchedRow, tokio_postgres::Error> {
    // A negative number of attempts counts as none, here and when the row is settled.
    let attempts = u32::try_from(row.try_get::<_, i32>(ATTEMPTS)?);
    let timed = due_at(row)?.is_some();
    let event = attempts.map_err(|_| "attempts is negative".to_owned()).and_then(|n| event(seq, row, n, timed));
    Ok(match event {
        Ok(event) => FetchedRow::Row(event),
        Err(reason) => {
            let (partition, key) = (partition(row).ok().flatten(), order_key(row));
            let (attempts, event_id) = (attempts.unwrap_or(0), EventId::from_stored(row.try_get(EVENT_ID)?));
            let handler = row.try_get::<_, Option<&str>>(HANDLER)?.map(Box::from);
            FetchedRow::Broken(BrokenRow { seq, event_id, handler, attempts, timed, partition, key, reason })
        }
    })
}

/// The time at which a row is due, if it has a due time: as `{is_timed}` in the statements has it.
pub(crate) fn due_at(row: &tokio_postgres::Row) -> Result<Option<Micros>, tokio_postgres::Error> {
    let (available_at, created_at): (Option<Micros>, Option<Micros>) =
        (row.try_get(AVAILABLE_AT)?, row.try_get(CREATED_AT)?);
    let is_new = row.try_get::<_, i16>(STATUS)? == Status::New.code();
    Ok(available_at.filter(|due| !is_new || created_at.is_none_or(|created| *due > created)))
}

/// The bytes of a row's payload, as they came.
pub(crate) fn payload_bytes(row: &tokio_postgres::Row) -> Result<usize, tokio_postgres::Error> {
    let (json, bytes): (Option<Length>, Option<Length>) = (row.try_get(PAYLOAD)?, row.try_get(PAYLOAD_BYTES)?);
    Ok(json.map_or(0, |Length(length)| length) + bytes.map_or(0, |Length(length)| length))
}

/// The key that a row is ordered by, as far as it can be read.
fn order_key(row: &tokio_postgres::Row) -> Option<OrderKey> {
    let readable = |index| text(row, index).ok().flatten();
    let key = readable(ORDERING_KEY).or_else(|| readable(AGGREGATE_ID))?;
    Some(OrderKey { handler: readable(HANDLER).map(Into::into), key: key.into() })
}

/// One that does not exist is as good as none.
fn partition(row: &tokio_postgres::Row) -> Result<Option<u8>, String> {
    Ok(column::<Option<i16>>(row, PARTITION)?.and_then(|partition| partition.try_into().ok()))
}

fn event(seq: i64, row: &tokio_postgres::Row, attempts: u32, timed: bool) -> Result<Row, String> {
    let event_type = text(row, EVENT_TYPE)?.unwrap_or_default();
    if event_type.is_empty() {
        return Err("event_type is empty".to_owned());
    }
    let created_at = time(row, CREATED_AT)?.ok_or("created_at is NULL")?;
    Ok(Row {
        seq,
        event_id: EventId::new(text(row, EVENT_ID)?.unwrap_or_default()).map_err(|error| error.to_string())?,
        event_type: event_type.into(),
        aggregate_type: text(row, AGGREGATE_TYPE)?.unwrap_or(GLOBAL_AGGREGATE).into(),
        aggregate_id: text(row, AGGREGATE_ID)?.map(Into::into),
        tenant_id: text(row, TENANT_ID)?.map(Into::into),
        key: text(row, ORDERING_KEY)?.map(Into::into),
        handler: text(row, HANDLER)?.map(Into::into),
        headers: headers(row)?,
        payload: payload(row)?,
        attempts,
        timed,
        status: if column::<i16>(row, STATUS)? == Status::Retry.code() { Status::Retry } else { Status::New },
        partition: partition(row)?,
        locked_by: text(row, LOCKED_BY)?.map(Into::into),
        occurred_at: time(row, OCCURRED_AT)?.unwrap_or(created_at),
        created_at,
    })
}

fn headers(row: &tokio_postgres::Row) -> Result<Headers, String> {
    match text(row, HEADERS)? {
        None => Ok(Headers::new()),
        Some(json) => {
            Headers::from_json(json).map_err(|error| format!("headers is not a JSON object of strings: {error}"))
        }
    }
}

fn payload(row: &tokio_postgres::Row) -> Result<Payload, String> {
    let bytes: Option<&[u8]> = column(row, PAYLOAD_BYTES)?;
    match (text(row, PAYLOAD)?, bytes) {
        (Some(json), None) => Ok(Payload::Json(json.into())),
        (None, Some(bytes)) => {
            let content_type = text(row, CONTENT_TYPE)?.ok_or("content_type is missing beside payload_bytes")?;
            Ok(Payload::Binary { content_type: content_type.into(), bytes: Bytes::copy_from_slice(bytes) })
        }
        (None, None) => Err("payload and payload_bytes are both NULL".to_owned()),
        (Some(_), Some(_)) => Err("payload and payload_bytes are both set".to_owned()),
    }
}

fn text(row: &tokio_postgres::Row, index: usize) -> Result<Option<&str>, String> {
    column(row, index)
}

fn time(row: &tokio_postgres::Row, index: usize) -> Result<Option<Timestamp>, String> {
    Ok(column::<Option<Micros>>(row, index)?.map(Into::into))
}

fn column<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, index: usize) -> Result<T, String> {
    row.try_get(index).map_err(|error| {
        let name = row.columns().get(index).map_or("a column", |column| column.name());
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("{name} cannot be read: {cause}")
    })
}

/// The length of a value.
struct Length(usize);

impl<'a> FromSql<'a> for Length {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.len()))
    }

    accepts!(TEXT, BYTEA);
}

/// A `timestamptz` as microseconds since 1970, exact and without a limit: `infinity` is the end of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Micros(pub(crate) i64);

impl Micros {
    /// The end of a lease as what a renewal leaves in the node's row.
    pub(crate) fn mark(self) -> LeaseMark {
        LeaseMark(self.0.saturating_sub(EPOCH_2000))
    }
}

impl From<Micros> for Timestamp {
    fn from(micros: Micros) -> Self {
        Self::from_micros(micros.0)
    }
}

/// PostgreSQL counts from the year 2000.
const EPOCH_2000: i64 = 946_684_800_000_000;

impl<'a> FromSql<'a> for Micros {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?).saturating_add(EPOCH_2000)))
    }

    accepts!(TIMESTAMPTZ);
}
