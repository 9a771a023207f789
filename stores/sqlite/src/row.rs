use pillarbox_core::row::RawRow;
use pillarbox_core::store::FetchedRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row as _, Sqlite, Type};

// The columns of `sql::COLUMNS` by position, in the order that the other stores have too; a test below compares it with the list.
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
const OCCURRED_AT: usize = 12;
const CREATED_AT: usize = 13;
const STATUS: usize = 14;
const PARTITION: usize = 15;
const HANDLER: usize = 16;
const REPLAYS: usize = 17;
const LOCKED_BY: usize = 18;

/// Reads a row of the columns that `sql.rs` lists.
pub(crate) fn decode(row: &SqliteRow, timed: bool) -> Result<FetchedRow, sqlx::Error> {
    let raw = RawRow {
        seq: row.try_get(SEQ)?,
        timed,
        attempts: row.try_get(ATTEMPTS)?,
        replays: read(row, REPLAYS),
        event_id: read(row, EVENT_ID),
        event_type: read(row, EVENT_TYPE),
        aggregate_type: read(row, AGGREGATE_TYPE),
        aggregate_id: read(row, AGGREGATE_ID),
        tenant_id: read(row, TENANT_ID),
        ordering_key: read(row, ORDERING_KEY),
        handler: read(row, HANDLER),
        headers: read(row, HEADERS),
        payload: read(row, PAYLOAD),
        payload_bytes: read(row, PAYLOAD_BYTES),
        content_type: read(row, CONTENT_TYPE),
        status: read(row, STATUS),
        partition: read(row, PARTITION),
        locked_by: read(row, LOCKED_BY),
        occurred_at: read(row, OCCURRED_AT),
        created_at: read(row, CREATED_AT),
    };
    Ok(raw.into_fetched())
}

/// The bytes of a row's payload and headers, also if they make no event.
pub(crate) fn content_bytes(row: &SqliteRow) -> Result<usize, sqlx::Error> {
    let mut sum = 0;
    for column in [PAYLOAD, PAYLOAD_BYTES, HEADERS] {
        // Bytes can be read of text too.
        sum += row.try_get::<Option<&[u8]>, _>(column)?.map_or(0, <[u8]>::len);
    }
    Ok(sum)
}

/// A column's value. The tables are STRICT, so what fails here is text that is no UTF-8.
fn read<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, index: usize) -> Result<T, String> {
    row.try_get(index).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::COLUMNS;

    #[test]
    fn every_statement_selects_the_columns_in_their_places() {
        let mut columns = vec![""; LOCKED_BY + 1];
        for (place, name) in [
            (SEQ, "seq"),
            (EVENT_ID, "event_id"),
            (EVENT_TYPE, "event_type"),
            (AGGREGATE_TYPE, "aggregate_type"),
            (AGGREGATE_ID, "aggregate_id"),
            (TENANT_ID, "tenant_id"),
            (ORDERING_KEY, "ordering_key"),
            (PAYLOAD, "payload"),
            (PAYLOAD_BYTES, "payload_bytes"),
            (CONTENT_TYPE, "content_type"),
            (HEADERS, "headers"),
            (ATTEMPTS, "attempts"),
            (OCCURRED_AT, "occurred_at"),
            (CREATED_AT, "created_at"),
            (STATUS, "status"),
            (PARTITION, "partition"),
            (HANDLER, "handler"),
            (REPLAYS, "replays"),
            (LOCKED_BY, "locked_by"),
        ] {
            columns[place] = name;
        }
        assert_eq!(COLUMNS.split(", ").collect::<Vec<_>>(), columns);
        for statement in [include_str!("../sql/fetch_ready.sql"), include_str!("../sql/fetch_due.sql")] {
            assert!(statement.starts_with("SELECT {columns}\nFROM"), "{statement}");
        }
    }
}
