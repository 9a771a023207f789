use mysql_async::Row as Columns;
use pillarbox_core::event::limits;
use pillarbox_core::row::RawRow;
use pillarbox_core::store::FetchedRow;

use crate::answer::{bytes, int, is_true, optional_int, text};
use crate::error::Failure;

// The columns of `event_columns.sql` by position, in the order that the other stores have too; a test below compares it with the file.
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
const STATUS: usize = 15;
const PARTITION: usize = 16;
const HANDLER: usize = 17;
const REPLAYS: usize = 18;
const LOCKED_BY: usize = 19;
/// The bytes of the payload and the headers, of rows that are too large.
const BYTES_IF_TOO_LARGE: usize = 20;

/// Reads a row of the columns of `event_columns.sql`, by position: a look-up by name would compare strings for every value of
/// every row.
pub(crate) fn decode(row: &Columns) -> Result<FetchedRow, Failure> {
    let text = |index| read(text(row, index));
    let number = |index| read(optional_int(row, index));
    let raw = RawRow {
        seq: int(row, SEQ)?,
        timed: is_true(row, TIMED)?,
        attempts: int(row, ATTEMPTS)?,
        replays: replays(row),
        event_id: text(EVENT_ID),
        event_type: text(EVENT_TYPE),
        aggregate_type: text(AGGREGATE_TYPE),
        aggregate_id: text(AGGREGATE_ID),
        tenant_id: text(TENANT_ID),
        ordering_key: text(ORDERING_KEY),
        handler: text(HANDLER),
        headers: text(HEADERS),
        payload: not_too_large(row).and_then(|()| text(PAYLOAD)),
        payload_bytes: read(bytes(row, PAYLOAD_BYTES)),
        content_type: text(CONTENT_TYPE),
        status: number(STATUS),
        partition: number(PARTITION),
        locked_by: text(LOCKED_BY),
        occurred_at: number(OCCURRED_AT),
        created_at: number(CREATED_AT),
    };
    Ok(raw.into_fetched())
}

/// The bytes of a row's payload and headers.
pub(crate) fn content_bytes(row: &Columns) -> usize {
    let size = |index| bytes(row, index).ok().flatten().map_or(0, <[u8]>::len);
    size(PAYLOAD) + size(PAYLOAD_BYTES) + size(HEADERS)
}

/// An error if the payload and the headers were left in the table, since they are too large.
fn not_too_large(row: &Columns) -> Result<(), String> {
    let Some(bytes) = read(optional_int(row, BYTES_IF_TOO_LARGE))? else { return Ok(()) };
    let bytes = u64::try_from(bytes).unwrap_or(0);
    if bytes > limits::ROW_BYTES as u64 {
        return Err(RawRow::too_large(bytes));
    }
    Err(format!("with the headers it has {bytes} bytes, more than `max_allowed_packet` of the server lets through"))
}

fn replays(row: &Columns) -> Result<u32, String> {
    let number = i32::try_from(read(int(row, REPLAYS))?).map_err(|error| error.to_string())?;
    Ok(number.cast_unsigned())
}

fn read<T>(answer: Result<T, Failure>) -> Result<T, String> {
    answer.map_err(Failure::into_problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::without_comments;

    /// The columns in the places that the constants give them.
    fn columns() -> Vec<&'static str> {
        let mut columns = vec![""; BYTES_IF_TOO_LARGE + 1];
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
            (TIMED, "queue"),
            (OCCURRED_AT, "occurred_at"),
            (CREATED_AT, "created_at"),
            (STATUS, "status"),
            (PARTITION, "partition"),
            (HANDLER, "handler"),
            (REPLAYS, "replays"),
            (LOCKED_BY, "locked_by"),
            (BYTES_IF_TOO_LARGE, "bytes_if_too_large"),
        ] {
            columns[place] = name;
        }
        columns
    }

    /// The last name of each value of a list, quoted or the name of a placeholder.
    fn names(list: &str) -> Vec<&str> {
        let (mut depth, mut begin, mut values) = (0_usize, 0, Vec::new());
        for (at, character) in list.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    values.push(&list[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        values.push(&list[begin..]);
        values.into_iter().map(|value| value.rsplit(['`', '{', '}']).nth(1).unwrap_or_default()).collect()
    }

    #[test]
    fn every_statement_selects_the_columns_in_their_places() {
        let list = include_str!("../sql/parts/event_columns.sql");
        assert_eq!(names(&without_comments(list)), columns());
        for statement in [include_str!("../sql/fetch_ready.sql"), include_str!("../sql/fetch_due.sql")] {
            assert!(statement.contains("SELECT {columns} FROM"), "{statement}");
        }
    }
}
