use std::error::Error;
use std::ops::Range;

use bytes::BytesMut;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::LeaseMark;
use pillarbox_core::row::{Column, RawRow, Status};
use pillarbox_core::store::FetchedRow;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

// The columns of `fetch.sql` and `claim.sql` by position: a look-up by name would compare strings for every value of every row.
pub(crate) const SEQ: usize = 0;
pub(crate) const EVENT_ID: usize = 1;
const PAYLOAD: usize = 7;
const PAYLOAD_BYTES: usize = 8;
const HEADERS: usize = 10;
pub(crate) const ATTEMPTS: usize = 11;
pub(crate) const AVAILABLE_AT: usize = 12;
pub(crate) const CREATED_AT: usize = 14;
const STATUS: usize = 15;
pub(crate) const LOCKED_BY: usize = 19;
/// In `fetch.sql` alone.
pub(crate) const ASIDE: usize = 20;

/// Stands before the bytes of the payload and the headers, in the place of one that was left in the table: JSON has no such character.
pub(crate) const TOO_LARGE: char = '\u{1}';

/// Reads a row.
pub(crate) fn decode(seq: i64, row: &tokio_postgres::Row) -> Result<FetchedRow, tokio_postgres::Error> {
    let raw = RawRow {
        seq,
        timed: due_at(row)?.is_some(),
        attempts: row.try_get::<_, i32>(ATTEMPTS)?.into(),
        replays: read::<i32>(row, 18).map(i32::cast_unsigned),
        event_id: read(row, EVENT_ID),
        event_type: read(row, 2),
        aggregate_type: read(row, 3),
        aggregate_id: read(row, 4),
        tenant_id: read(row, 5),
        ordering_key: read(row, 6),
        handler: read(row, 17),
        headers: json(row, HEADERS),
        payload: json(row, PAYLOAD),
        payload_bytes: read(row, PAYLOAD_BYTES),
        content_type: read(row, 9),
        status: int(row, STATUS),
        partition: int(row, 16),
        locked_by: read(row, LOCKED_BY),
        occurred_at: time(row, 13),
        created_at: time(row, CREATED_AT),
    };
    Ok(raw.into_fetched())
}

/// A payload or headers, unless they were left in the table.
fn json(row: &tokio_postgres::Row, index: usize) -> Column<&str> {
    let text: Option<&str> = read(row, index)?;
    match text.and_then(|text| text.strip_prefix(TOO_LARGE)) {
        Some(bytes) => Err(RawRow::too_large(bytes.parse().unwrap_or(u64::MAX))),
        None => Ok(text),
    }
}

fn int(row: &tokio_postgres::Row, index: usize) -> Column<i64> {
    Ok(read::<Option<i16>>(row, index)?.map(i64::from))
}

fn time(row: &tokio_postgres::Row, index: usize) -> Column<i64> {
    Ok(read::<Option<Micros>>(row, index)?.map(|Micros(micros)| micros))
}

fn read<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, index: usize) -> Result<T, String> {
    row.try_get(index).map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// The time at which a row is due, if it has a due time: as `{is_timed}` in the statements has it.
pub(crate) fn due_at(row: &tokio_postgres::Row) -> Result<Option<Micros>, tokio_postgres::Error> {
    let (available_at, created_at): (Option<Micros>, Option<Micros>) =
        (row.try_get(AVAILABLE_AT)?, row.try_get(CREATED_AT)?);
    let is_new = row.try_get::<_, i16>(STATUS)? == Status::New.code();
    Ok(available_at.filter(|due| !is_new || created_at.is_none_or(|created| *due > created)))
}

/// The bytes of a row's payload and headers, as they came.
pub(crate) fn content_bytes(row: &tokio_postgres::Row) -> Result<usize, tokio_postgres::Error> {
    let mut sum = 0;
    for column in [PAYLOAD, PAYLOAD_BYTES, HEADERS] {
        sum += row.try_get::<_, Option<Length>>(column)?.map_or(0, |Length(length)| length);
    }
    Ok(sum)
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

impl From<Timestamp> for Micros {
    fn from(time: Timestamp) -> Self {
        Self(time.as_micros())
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

/// The times that PostgreSQL knows, counted from the year 2000; beyond them lies what is infinite.
const KNOWN_TIMES: Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

impl ToSql for Micros {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let time = self.0.saturating_sub(EPOCH_2000);
        let (known, end) = (KNOWN_TIMES.contains(&time), if time < 0 { i64::MIN } else { i64::MAX });
        out.extend_from_slice(&if known { time } else { end }.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}
