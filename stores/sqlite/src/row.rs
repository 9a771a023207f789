use bytes::Bytes;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, GLOBAL_AGGREGATE, Headers, Payload};
use pillarbox_core::row::Status;
use pillarbox_core::store::{BrokenRow, FetchedRow, OrderKey, Row};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row as _, Sqlite, Type};

/// Reads a row of the columns that `sql.rs` lists. A row that makes no event is handed over as broken, not as an error.
pub(crate) fn decode(row: &SqliteRow, timed: bool) -> Result<FetchedRow, sqlx::Error> {
    let (seq, attempts) = (row.try_get(0)?, row.try_get::<u32, _>(1)?);
    Ok(match event(row, seq, attempts, timed) {
        Ok(row) => FetchedRow::Row(row),
        Err(reason) => {
            let (partition, key) = (partition(row).ok().flatten(), order_key(row));
            // The text as it is, as far as it is any.
            let event_id = EventId::from_stored(&text(row, 2).ok().flatten().unwrap_or_default());
            let handler = text(row, 17).ok().flatten();
            FetchedRow::Broken(BrokenRow { seq, event_id, handler, attempts, timed, partition, key, reason })
        }
    })
}

/// The key that a row is ordered by, as far as it can be read.
fn order_key(row: &SqliteRow) -> Option<OrderKey> {
    let readable = |index| text(row, index).ok().flatten();
    Some(OrderKey { handler: readable(17), key: readable(7).or_else(|| readable(5))? })
}

fn event(row: &SqliteRow, seq: i64, attempts: u32, timed: bool) -> Result<Row, String> {
    let event_type: &str = column(row, 3)?;
    if event_type.is_empty() {
        return Err("column `event_type` is empty".to_owned());
    }
    let created_at = column(row, 13)?;
    Ok(Row {
        seq,
        event_id: EventId::new(column::<&str>(row, 2)?).map_err(|error| error.to_string())?,
        event_type: event_type.into(),
        aggregate_type: column::<Option<&str>>(row, 4)?.unwrap_or(GLOBAL_AGGREGATE).into(),
        aggregate_id: text(row, 5)?,
        tenant_id: text(row, 6)?,
        key: text(row, 7)?,
        handler: text(row, 17)?,
        headers: match column::<Option<&str>>(row, 8)? {
            None => Headers::new(),
            Some(json) => Headers::from_json(json)
                .map_err(|error| format!("column `headers` is not a JSON object of texts: {error}"))?,
        },
        payload: payload(row)?,
        attempts,
        timed,
        status: if column::<i16>(row, 15)? == Status::Retry.code() { Status::Retry } else { Status::New },
        partition: partition(row)?,
        locked_by: text(row, 14)?,
        occurred_at: Timestamp::from_micros(column::<Option<i64>>(row, 12)?.unwrap_or(created_at)),
        created_at: Timestamp::from_micros(created_at),
    })
}

fn payload(row: &SqliteRow) -> Result<Payload, String> {
    match (text(row, 9)?, column::<Option<&[u8]>>(row, 10)?) {
        (Some(json), None) => Ok(Payload::Json(json)),
        (None, Some(bytes)) => {
            let content_type = text(row, 11)?.ok_or("column `content_type` is missing beside `payload_bytes`")?;
            Ok(Payload::Binary { content_type, bytes: Bytes::copy_from_slice(bytes) })
        }
        (None, None) => Err("columns `payload` and `payload_bytes` are both NULL".to_owned()),
        (Some(_), Some(_)) => Err("columns `payload` and `payload_bytes` are both set".to_owned()),
    }
}

fn partition(row: &SqliteRow) -> Result<Option<u8>, String> {
    let number: Option<i64> = column(row, 16)?;
    // One that does not exist is as good as none.
    Ok(number.and_then(|number| u8::try_from(number).ok()))
}

fn text(row: &SqliteRow, index: usize) -> Result<Option<Box<str>>, String> {
    Ok(column::<Option<&str>>(row, index)?.map(Into::into))
}

/// A column's value. The tables are STRICT, so what fails here is text that is no UTF-8.
fn column<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, index: usize) -> Result<T, String> {
    row.try_get(index).map_err(|error| error.to_string())
}
