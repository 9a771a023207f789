use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{FailedAttempt, Record, Statement};
use crate::clock::Timestamp;
use crate::event::{Decode, Event, Payload, decode};

/// A question about the event table, which an adapter asks in the user's transaction: the answer holds what that has
/// written and not committed yet.
#[derive(Debug)]
pub struct Lookup<'a> {
    /// The question, for stores without SQL.
    pub question: Question<'a>,
    /// The statement that answers it, a text for each row. None without SQL.
    pub statements: Vec<Statement<'a>>,
}

/// The rows that a [`Lookup`] asks for, and the form of the answer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Question<'a> {
    /// The highest `seq`, descending, at most so many: each in decimal digits.
    Newest(usize),
    /// The rows that stand at these places, ascending: each as [JSON](Record::to_json).
    Records(&'a [i64]),
}

/// A row as an object of its columns. Times are microseconds since the Unix epoch, bytes are hexadecimal digits.
#[derive(Serialize, Deserialize)]
struct Columns {
    seq: i64,
    event_id: String,
    event_type: String,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    tenant_id: Option<String>,
    ordering_key: Option<String>,
    handler: Option<String>,
    payload: Option<String>,
    payload_bytes: Option<String>,
    content_type: Option<String>,
    headers: Option<String>,
    status: i16,
    attempts: i32,
    replays: i32,
    available_at: Option<i64>,
    occurred_at: Option<i64>,
    created_at: i64,
    done_at: Option<i64>,
    last_error: Option<String>,
    locked_by: Option<String>,
    /// The column's own JSON, as text.
    failures: Option<String>,
    unique_key: Option<String>,
    delivered_as: Option<String>,
}

impl Record {
    /// Reads the payload as a typed event, with the codec of its type. The type of the event is not compared.
    ///
    /// # Errors
    /// When there is no payload, or it is of another content type, or not such an event.
    pub fn decode<E: Event<Codec: Decode<E>>>(&self) -> Result<E, String> {
        let payload = self.payload.as_ref().ok_or("payload and payload_bytes are both NULL")?;
        decode(payload)
    }

    /// The record as a JSON object, the form in which [`Question::Records`] is answered: a member for each column, times in
    /// microseconds since the Unix epoch, `payload_bytes` in hexadecimal digits.
    #[must_use]
    pub fn to_json(&self) -> String {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::as_micros);
        let (payload, payload_bytes, content_type) = match self.payload.clone() {
            Some(Payload::Json(text)) => (Some(text.into()), None, None),
            Some(Payload::Binary { content_type, bytes }) => (None, Some(hex(&bytes)), Some(content_type.into())),
            None => (None, None, None),
        };
        let Self { seq, status, attempts, replays, .. } = *self;
        let record = self.clone();
        let columns = Columns {
            seq,
            event_id: record.event_id,
            event_type: record.event_type,
            aggregate_type: record.aggregate_type,
            aggregate_id: record.aggregate_id,
            tenant_id: record.tenant_id,
            ordering_key: record.ordering_key,
            handler: record.handler,
            payload,
            payload_bytes,
            content_type,
            headers: record.headers,
            status,
            attempts,
            replays,
            available_at: micros(record.available_at),
            occurred_at: micros(record.occurred_at),
            created_at: record.created_at.as_micros(),
            done_at: micros(record.done_at),
            last_error: record.last_error,
            locked_by: record.locked_by,
            failures: FailedAttempt::column(&record.failures),
            unique_key: record.unique_key,
            delivered_as: record.delivered_as,
        };
        // Text and numbers can always be written.
        serde_json::to_string(&columns).unwrap_or_default()
    }

    /// Reads what [`to_json`](Self::to_json) wrote, or a statement of a store.
    ///
    /// # Errors
    /// When the text is no such object; the error says which column is wrong.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let row: Columns = serde_json::from_str(text)?;
        let bytes = row.payload_bytes.as_deref().map(unhex).transpose()?;
        let payload = match (row.payload, bytes) {
            (Some(text), _) => Some(Payload::Json(text.into())),
            (None, Some(bytes)) => {
                Some(Payload::Binary { content_type: row.content_type.unwrap_or_default().into(), bytes })
            }
            (None, None) => None,
        };
        let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
        Ok(Self {
            seq: row.seq,
            event_id: row.event_id,
            event_type: row.event_type,
            aggregate_type: row.aggregate_type,
            aggregate_id: row.aggregate_id,
            tenant_id: row.tenant_id,
            ordering_key: row.ordering_key,
            handler: row.handler,
            payload,
            headers: row.headers,
            status: row.status,
            attempts: row.attempts,
            replays: row.replays,
            available_at: time(row.available_at),
            occurred_at: time(row.occurred_at),
            created_at: Timestamp::from_micros(row.created_at),
            done_at: time(row.done_at),
            last_error: row.last_error,
            locked_by: row.locked_by,
            failures: FailedAttempt::all_of(row.failures.as_deref()),
            unique_key: row.unique_key,
            delivered_as: row.delivered_as,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]].map(char::from);
    bytes.iter().flat_map(digits).collect()
}

fn unhex(digits: &str) -> Result<Bytes, serde_json::Error> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    let bytes = bytes.filter(|_| rest.is_empty());
    bytes.map(Bytes::from).ok_or_else(|| serde::de::Error::custom("payload_bytes is not hexadecimal text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{FetchedRow, Status};

    fn record(payload: Option<Payload>) -> Record {
        let some = |text: &str| Some(text.to_owned());
        let time = Timestamp::from_micros;
        Record {
            seq: i64::MAX,
            event_id: "Grüße \"🦀\"".to_owned(),
            event_type: "order.placed".to_owned(),
            aggregate_type: some("order"),
            aggregate_id: some("o-1"),
            tenant_id: some("\u{1}"),
            ordering_key: some("k"),
            handler: some("mail"),
            payload,
            headers: some("{}"),
            status: 2,
            attempts: 3,
            replays: 4,
            available_at: Some(time(-5)),
            occurred_at: Some(time(6)),
            created_at: time(7),
            done_at: Some(time(8)),
            last_error: some("\\ refused\n"),
            locked_by: some("node!"),
            failures: vec![FailedAttempt {
                attempts: 3,
                at: time(9),
                node: "node".to_owned(),
                error: "\\ refused\n".to_owned(),
            }],
            unique_key: some("u \"1\""),
            delivered_as: some("Grüße/1"),
        }
    }

    #[test]
    fn a_record_is_the_same_after_it_was_json() {
        let bytes = Payload::Binary { content_type: "image/png".into(), bytes: Bytes::from_static(&[0, 15, 16, 255]) };
        for payload in [None, Some(Payload::Json(r#"{"a": "\u0000"}"#.into())), Some(bytes)] {
            let record = record(payload);
            assert_eq!(Record::from_json(&record.to_json()).expect("is a record"), record);
        }
    }

    #[test]
    fn a_record_is_read_as_a_node_reads_its_row() {
        let bytes = Payload::Binary { content_type: "image/png".into(), bytes: Bytes::from_static(&[0, 255]) };
        for payload in [Payload::Json(r#"{"a": 1}"#.into()), bytes] {
            let FetchedRow::Row(row) = record(Some(payload.clone())).to_fetched() else { panic!("it is an event") };
            assert_eq!(
                (row.seq, row.attempts, row.replays, row.timed, row.status),
                (i64::MAX, 3, 4, true, Status::Retry)
            );
            let texts = [
                row.event.aggregate_id(),
                row.event.tenant_id(),
                row.event.key(),
                row.handler.as_deref(),
                row.locked_by.as_deref(),
            ];
            assert_eq!(
                texts.map(|text| text.map(String::from)),
                ["o-1", "\u{1}", "k", "mail", "node!"].map(|text| Some(text.to_owned()))
            );
            assert_eq!((row.event.event_type(), row.event.payload()), ("order.placed", &payload));
        }
        let FetchedRow::Broken(broken) = record(None).to_fetched() else { panic!("it has no payload") };
        assert!(broken.reason.contains("both NULL"), "{}", broken.reason);
    }

    #[test]
    fn invalid_fields_of_a_record_are_named() {
        let error = |json: &str| Record::from_json(json).expect_err("is no record").to_string();
        assert!(error("{}").starts_with("missing field `seq`"), "{}", error("{}"));
        for digits in ["0", "0g", "é"] {
            let mut columns: serde_json::Value = serde_json::from_str(&record(None).to_json()).expect("is JSON");
            columns["payload_bytes"] = digits.into();
            assert_eq!(error(&columns.to_string()), "payload_bytes is not hexadecimal text");
        }
    }
}
