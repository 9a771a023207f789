use mysql_async::Row as Columns;
use pillarbox_core::event::limits;
use pillarbox_core::row::RawRow;
use pillarbox_core::store::FetchedRow;

use crate::answer::{bytes, int, is_true, optional_int, text};
use crate::error::Failure;

const PAYLOAD: usize = 7;
const PAYLOAD_BYTES: usize = 8;
const HEADERS: usize = 10;
/// The bytes of the payload and the headers, of rows that are too large.
const BYTES_IF_TOO_LARGE: usize = 20;

/// Reads a row of the columns of `event_columns.sql`, by position: a look-up by name would compare strings for every value of
/// every row.
pub(crate) fn decode(row: &Columns) -> Result<FetchedRow, Failure> {
    let text = |index| read(text(row, index));
    let number = |index| read(optional_int(row, index));
    let raw = RawRow {
        seq: int(row, 0)?,
        timed: is_true(row, 12)?,
        attempts: int(row, 11)?,
        replays: replays(row, 19),
        event_id: text(1),
        event_type: text(2),
        aggregate_type: text(3),
        aggregate_id: text(4),
        tenant_id: text(5),
        ordering_key: text(6),
        handler: text(18),
        headers: text(HEADERS),
        payload: not_too_large(row).and_then(|()| text(PAYLOAD)),
        payload_bytes: read(bytes(row, PAYLOAD_BYTES)),
        content_type: text(9),
        status: number(16),
        partition: number(17),
        locked_by: text(15),
        occurred_at: number(13),
        created_at: number(14),
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

fn replays(row: &Columns, index: usize) -> Result<u32, String> {
    let number = i32::try_from(read(int(row, index))?).map_err(|error| error.to_string())?;
    Ok(number.cast_unsigned())
}

fn read<T>(answer: Result<T, Failure>) -> Result<T, String> {
    answer.map_err(Failure::into_problem)
}
