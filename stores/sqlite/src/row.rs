use pillarbox_core::row::RawRow;
use pillarbox_core::store::FetchedRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row as _, Sqlite, Type};

const HEADERS: usize = 8;
const PAYLOAD: usize = 9;
const PAYLOAD_BYTES: usize = 10;

/// Reads a row of the columns that `sql.rs` lists.
pub(crate) fn decode(row: &SqliteRow, timed: bool) -> Result<FetchedRow, sqlx::Error> {
    let raw = RawRow {
        seq: row.try_get(0)?,
        timed,
        attempts: row.try_get(1)?,
        replays: read(row, 18),
        event_id: read(row, 2),
        event_type: read(row, 3),
        aggregate_type: read(row, 4),
        aggregate_id: read(row, 5),
        tenant_id: read(row, 6),
        ordering_key: read(row, 7),
        handler: read(row, 17),
        headers: read(row, HEADERS),
        payload: read(row, PAYLOAD),
        payload_bytes: read(row, PAYLOAD_BYTES),
        content_type: read(row, 11),
        status: read(row, 15),
        partition: read(row, 16),
        locked_by: read(row, 14),
        occurred_at: read(row, 12),
        created_at: read(row, 13),
    };
    Ok(raw.into_fetched())
}

/// The bytes of a row's payload and headers, whether they make an event or not.
pub(crate) fn content_bytes(row: &SqliteRow) -> Result<usize, sqlx::Error> {
    let mut sum = 0;
    for column in [HEADERS, PAYLOAD, PAYLOAD_BYTES] {
        // Bytes can be read of text too.
        sum += row.try_get::<Option<&[u8]>, _>(column)?.map_or(0, <[u8]>::len);
    }
    Ok(sum)
}

/// A column's value. The tables are STRICT, so what fails here is text that is no UTF-8.
fn read<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, index: usize) -> Result<T, String> {
    row.try_get(index).map_err(|error| error.to_string())
}
