use bytes::Bytes;
use mysql_async::Row as Columns;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, GLOBAL_AGGREGATE, Headers, Payload};
use pillarbox_core::row::Status;
use pillarbox_core::store::{BrokenRow, FetchedRow, OrderKey, Row};

use crate::answer::{bytes, int, is_true, optional_int, text};
use crate::error::Failure;

// The columns of `event_columns.sql` by position: a look-up by name would compare strings for every value of every row.
const SEQ: usize = 0;
const EVENT_ID: usize = 1;
const EVENT_TYPE: usize = 2;
const AGGREGATE_TYPE: usize = 3;
const AGGREGATE_ID: usize = 4;
const TENANT_ID: usize = 5;
const ORDERING_KEY: usize = 6;
const PAYLOAD: usize = 7;
const PAYLOAD_BYTES: usize = 8;
const CONTENT_TYPE: usize = 9;
const HEADERS: usize = 10;
const ATTEMPTS: usize = 11;
const TIMED: usize = 12;
const OCCURRED_AT: usize = 13;
const CREATED_AT: usize = 14;
const LOCKED_BY: usize = 15;
const STATUS: usize = 16;
const PARTITION: usize = 17;
const HANDLER: usize = 18;

/// Reads a row. What makes no event is handed over as broken, so that it does not stop its neighbours.
pub(crate) fn decode(row: &Columns) -> Result<FetchedRow, Failure> {
    // A negative number of attempts counts as none, here and when the row is settled.
    let attempts = u32::try_from(int(row, ATTEMPTS)?);
    let (seq, timed) = (int(row, SEQ)?, is_true(row, TIMED)?);
    let event = attempts.map_err(|_| "attempts is negative".to_owned()).and_then(|n| event(seq, row, n, timed));
    Ok(match event {
        Ok(event) => FetchedRow::Row(event),
        Err(reason) => {
            let (partition, key) = (partition(row).ok().flatten(), order_key(row));
            let (attempts, id) = (attempts.unwrap_or(0), text(row, EVENT_ID)?.unwrap_or_default());
            let (event_id, handler) = (EventId::from_stored(id), text(row, HANDLER)?.map(Box::from));
            FetchedRow::Broken(BrokenRow { seq, event_id, handler, attempts, timed, partition, key, reason })
        }
    })
}

/// The size of a row's payload.
pub(crate) fn payload_bytes(row: &Columns) -> usize {
    let size = |index| bytes(row, index).ok().flatten().map_or(0, <[u8]>::len);
    size(PAYLOAD) + size(PAYLOAD_BYTES)
}

/// The key that a row is ordered by, as far as it can be read.
fn order_key(row: &Columns) -> Option<OrderKey> {
    let readable = |index, name| column(row, index, name).ok().flatten();
    let key = readable(ORDERING_KEY, "ordering_key").or_else(|| readable(AGGREGATE_ID, "aggregate_id"))?;
    Some(OrderKey { handler: readable(HANDLER, "handler").map(Into::into), key: key.into() })
}

fn event(seq: i64, row: &Columns, attempts: u32, timed: bool) -> Result<Row, String> {
    let event_type = column(row, EVENT_TYPE, "event_type")?.unwrap_or_default();
    if event_type.is_empty() {
        return Err("event_type is empty".to_owned());
    }
    let created_at = time(row, CREATED_AT, "created_at")?.ok_or("created_at is NULL")?;
    let boxed = |index, name| Ok::<_, String>(column(row, index, name)?.map(Into::into));
    let id = column(row, EVENT_ID, "event_id")?.unwrap_or_default();
    Ok(Row {
        seq,
        event_id: EventId::new(id).map_err(|error| error.to_string())?,
        event_type: event_type.into(),
        aggregate_type: column(row, AGGREGATE_TYPE, "aggregate_type")?.unwrap_or(GLOBAL_AGGREGATE).into(),
        aggregate_id: boxed(AGGREGATE_ID, "aggregate_id")?,
        tenant_id: boxed(TENANT_ID, "tenant_id")?,
        key: boxed(ORDERING_KEY, "ordering_key")?,
        handler: boxed(HANDLER, "handler")?,
        headers: headers(row)?,
        payload: payload(row)?,
        attempts,
        timed,
        status: status(row)?,
        partition: partition(row)?,
        locked_by: boxed(LOCKED_BY, "locked_by")?,
        occurred_at: time(row, OCCURRED_AT, "occurred_at")?.unwrap_or(created_at),
        created_at,
    })
}

fn status(row: &Columns) -> Result<Status, String> {
    let code = optional_int(row, STATUS).map_err(|_| "status cannot be read")?;
    let known = Status::ALL.into_iter().find(|known| Some(i64::from(known.code())) == code);
    known.ok_or_else(|| "status is none of the known ones".to_owned())
}

fn partition(row: &Columns) -> Result<Option<u8>, String> {
    let number = optional_int(row, PARTITION).map_err(|_| "partition cannot be read")?;
    // One that does not exist is as good as none.
    Ok(number.and_then(|number| u8::try_from(number).ok()))
}

fn headers(row: &Columns) -> Result<Headers, String> {
    match column(row, HEADERS, "headers")? {
        None => Ok(Headers::new()),
        Some(json) => {
            Headers::from_json(json).map_err(|error| format!("headers is not a JSON object of strings: {error}"))
        }
    }
}

fn payload(row: &Columns) -> Result<Payload, String> {
    let binary = bytes(row, PAYLOAD_BYTES).map_err(|_| "payload_bytes cannot be read")?;
    match (column(row, PAYLOAD, "payload")?, binary) {
        (Some(json), None) => Ok(Payload::Json(json.into())),
        (None, Some(bytes)) => {
            let content_type = column(row, CONTENT_TYPE, "content_type")?;
            let content_type = content_type.ok_or("content_type is missing beside payload_bytes")?;
            Ok(Payload::Binary { content_type: content_type.into(), bytes: Bytes::copy_from_slice(bytes) })
        }
        (None, None) => Err("payload and payload_bytes are both NULL".to_owned()),
        (Some(_), Some(_)) => Err("payload and payload_bytes are both set".to_owned()),
    }
}

fn column<'a>(row: &'a Columns, index: usize, name: &str) -> Result<Option<&'a str>, String> {
    text(row, index).map_err(|_| format!("{name} cannot be read"))
}

fn time(row: &Columns, index: usize, name: &str) -> Result<Option<Timestamp>, String> {
    let micros = optional_int(row, index).map_err(|_| format!("{name} cannot be read"))?;
    Ok(micros.map(Timestamp::from_micros))
}
