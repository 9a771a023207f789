#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::error::Category;

use super::{BrokenRow, FetchedRow, OrderKey, Row, Status};
use crate::clock::Timestamp;
use crate::event::{Due, Envelope, EventId, GLOBAL_AGGREGATE, Headers, Payload, limits};

/// The value of a column, `None` if it is NULL; or the reason why the driver cannot read it.
pub type Column<T> = Result<Option<T>, String>;

/// The columns of a row as a driver gives them, borrowed from its buffer.
///
/// The rules for turning them into an event are here, once for all stores. A store reads each column by its position, and decides
/// only which failures concern the connection rather than the row.
pub struct RawRow<'a> {
    /// Column `seq`.
    pub seq: i64,
    /// True if the row has a due time.
    pub timed: bool,
    /// Column `attempts`, which other programs may have set to any number.
    pub attempts: i64,
    /// Column `replays`, bit for bit: a number that no release has written is compared as it is.
    pub replays: Result<u32, String>,
    /// Column `event_id`.
    pub event_id: Column<&'a str>,
    /// Column `event_type`.
    pub event_type: Column<&'a str>,
    /// Column `aggregate_type`.
    pub aggregate_type: Column<&'a str>,
    /// Column `aggregate_id`.
    pub aggregate_id: Column<&'a str>,
    /// Column `tenant_id`.
    pub tenant_id: Column<&'a str>,
    /// Column `ordering_key`.
    pub ordering_key: Column<&'a str>,
    /// Column `handler`.
    pub handler: Column<&'a str>,
    /// Column `headers`: JSON text.
    pub headers: Column<&'a str>,
    /// Column `payload`: JSON text.
    pub payload: Column<&'a str>,
    /// Column `payload_bytes`.
    pub payload_bytes: Column<&'a [u8]>,
    /// Column `content_type`, of `payload_bytes`.
    pub content_type: Column<&'a str>,
    /// Column `status`.
    pub status: Column<i64>,
    /// Column `partition`.
    pub partition: Column<i64>,
    /// Column `locked_by`.
    pub locked_by: Column<&'a str>,
    /// Column `occurred_at`, in microseconds since 1970.
    pub occurred_at: Column<i64>,
    /// Column `created_at`, in microseconds since 1970.
    pub created_at: Column<i64>,
}

// The columns may hold personal data, and `Debug` output ends up in logs.
impl fmt::Debug for RawRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRow").field("seq", &self.seq).field("event_id", &self.event_id).finish_non_exhaustive()
    }
}

impl RawRow<'_> {
    /// The row that the columns make; a broken one if they make no event, so that it does not stop its neighbours.
    #[inline]
    pub fn into_fetched(self) -> FetchedRow {
        match self.event() {
            Ok(row) => FetchedRow::Row(row),
            Err(reason) => FetchedRow::Broken(self.broken(reason)),
        }
    }

    /// The reason why a payload cannot be read that has so many bytes, together with the headers: more than [`limits::ROW_BYTES`]. A
    /// store that says so before it reads the payload keeps its row from taking the memory of all others.
    pub fn too_large(bytes: u64) -> String {
        format!("with the headers it has {bytes} bytes, over the limit of {}", limits::ROW_BYTES)
    }

    #[inline]
    fn event(&self) -> Result<Row, String> {
        let bytes = self.content_bytes();
        if bytes > limits::ROW_BYTES {
            return Err(unreadable("payload", &Self::too_large(u64::try_from(bytes).unwrap_or(u64::MAX))));
        }
        // A negative number counts as none when the row is settled.
        let attempts = u32::try_from(self.attempts).map_err(|_| "attempts is negative")?;
        let event_type = value(&self.event_type, "event_type")?.unwrap_or_default();
        if event_type.is_empty() {
            return Err("event_type is empty".to_owned());
        }
        let created_at = time(&self.created_at, "created_at")?.ok_or("created_at is NULL")?;
        let event_id = value(&self.event_id, "event_id")?.unwrap_or_default();
        let event = Envelope {
            id: EventId::new(event_id).map_err(|error| error.to_string())?,
            event_type: event_type.into(),
            aggregate_type: value(&self.aggregate_type, "aggregate_type")?.unwrap_or(GLOBAL_AGGREGATE).into(),
            aggregate_id: text(&self.aggregate_id, "aggregate_id")?,
            tenant_id: text(&self.tenant_id, "tenant_id")?,
            key: text(&self.ordering_key, "ordering_key")?,
            unique_key: None,
            headers: self.headers()?,
            payload: self.payload()?,
            occurred_at: time(&self.occurred_at, "occurred_at")?.unwrap_or(created_at),
            due: Due::AtOnce,
        };
        Ok(Row {
            seq: self.seq,
            event: Arc::new(event),
            handler: text(&self.handler, "handler")?,
            attempts,
            replays: *self.replays.as_ref().map_err(|error| unreadable("replays", error))?,
            timed: self.timed,
            status: self.status()?,
            partition: value(&self.partition, "partition")?.and_then(partition),
            locked_by: text(&self.locked_by, "locked_by")?,
            created_at,
        })
    }

    #[inline]
    fn headers(&self) -> Result<Headers, String> {
        match value(&self.headers, "headers")? {
            None => Ok(Headers::new()),
            Some(json) => Headers::from_json(json).map_err(|error| unreadable_headers(&error)),
        }
    }

    #[inline]
    fn payload(&self) -> Result<Payload, String> {
        match (value(&self.payload, "payload")?, value(&self.payload_bytes, "payload_bytes")?) {
            (Some(json), None) => Ok(Payload::Json(json.into())),
            (None, Some(bytes)) => {
                let content_type = text(&self.content_type, "content_type")?;
                let content_type = content_type.ok_or("content_type is missing beside payload_bytes")?;
                Ok(Payload::Binary { content_type, bytes: Bytes::copy_from_slice(bytes) })
            }
            (None, None) => Err("payload and payload_bytes are both NULL".to_owned()),
            (Some(_), Some(_)) => Err("payload and payload_bytes are both set".to_owned()),
        }
    }

    #[inline]
    fn status(&self) -> Result<Status, String> {
        let code = value(&self.status, "status")?.and_then(|code| i16::try_from(code).ok());
        code.and_then(Status::from_code).ok_or_else(|| "status is none of the known ones".to_owned())
    }

    /// The bytes of the payload and the headers, as far as they can be read.
    #[inline]
    fn content_bytes(&self) -> usize {
        [&self.headers, &self.payload].into_iter().filter_map(readable).map(str::len).sum::<usize>()
            + readable(&self.payload_bytes).map_or(0, <[u8]>::len)
    }

    /// The identity and the order of a row that makes no event, as far as they can be read.
    #[cold]
    fn broken(&self, reason: String) -> BrokenRow {
        let handler = readable(&self.handler).map(Box::<str>::from);
        let key = readable(&self.ordering_key).or_else(|| readable(&self.aggregate_id));
        BrokenRow {
            seq: self.seq,
            event_id: EventId::from_stored(readable(&self.event_id).unwrap_or_default()),
            key: key.map(|key| OrderKey { handler: handler.clone(), key: key.into() }),
            handler,
            attempts: u32::try_from(self.attempts).unwrap_or(0),
            replays: *self.replays.as_ref().unwrap_or(&0),
            timed: self.timed,
            partition: readable(&self.partition).and_then(partition),
            content_bytes: self.content_bytes(),
            reason,
        }
    }
}

/// A partition that does not exist is as good as none.
fn partition(number: i64) -> Option<u8> {
    u8::try_from(number).ok()
}

fn readable<T: Copy>(column: &Column<T>) -> Option<T> {
    column.as_ref().ok().copied().flatten()
}

#[inline]
fn value<T: Copy>(column: &Column<T>, name: &str) -> Result<Option<T>, String> {
    column.as_ref().copied().map_err(|error| unreadable(name, error))
}

#[inline]
fn text(column: &Column<&str>, name: &str) -> Result<Option<Box<str>>, String> {
    Ok(value(column, name)?.map(Into::into))
}

#[inline]
fn time(column: &Column<i64>, name: &str) -> Result<Option<Timestamp>, String> {
    Ok(value(column, name)?.map(Timestamp::from_micros))
}

/// Says where the headers go wrong, without a word of them: they may be long, and secret.
#[cold]
fn unreadable_headers(error: &serde_json::Error) -> String {
    let problem = match error.classify() {
        Category::Data => "it has something else",
        Category::Eof => "it ends too early",
        Category::Syntax | Category::Io => "it is no JSON",
    };
    let (line, column) = (error.line(), error.column());
    format!("headers is not a JSON object of strings: {problem} at line {line}, column {column}")
}

#[cold]
fn unreadable(name: &str, error: &str) -> String {
    format!("{name} cannot be read: {error}")
}
