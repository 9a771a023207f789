use std::error::Error;
use std::ops::Range;

use bytes::BytesMut;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::LeaseMark;
use pillarbox_core::row::{Column, RawRow, Status};
use pillarbox_core::store::FetchedRow;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

// The columns of `fetch.sql` and `claim.sql` by position: a look-up by name would compare strings for every value of every row. The other
// stores have them in the same order; a test below compares it with the statements.
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
const REPLAYS: usize = 18;
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
        replays: read::<i32>(row, REPLAYS).map(i32::cast_unsigned),
        event_id: read(row, EVENT_ID),
        event_type: read(row, EVENT_TYPE),
        aggregate_type: read(row, AGGREGATE_TYPE),
        aggregate_id: read(row, AGGREGATE_ID),
        tenant_id: read(row, TENANT_ID),
        ordering_key: read(row, ORDERING_KEY),
        handler: read(row, HANDLER),
        headers: json(row, HEADERS),
        payload: json(row, PAYLOAD),
        payload_bytes: read(row, PAYLOAD_BYTES),
        content_type: read(row, CONTENT_TYPE),
        status: int(row, STATUS),
        partition: int(row, PARTITION),
        locked_by: read(row, LOCKED_BY),
        occurred_at: time(row, OCCURRED_AT),
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
    /// The end of a lease as the mark that a renewal leaves in the node's row.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::AND_INTERVENTIONS;
    use crate::sql::without_comments;

    /// The columns in the places that the constants give them.
    fn columns() -> Vec<&'static str> {
        let mut columns = vec![""; ASIDE + 1];
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
            (AVAILABLE_AT, "available_at"),
            (OCCURRED_AT, "occurred_at"),
            (CREATED_AT, "created_at"),
            (STATUS, "status"),
            (PARTITION, "partition"),
            (HANDLER, "handler"),
            (REPLAYS, "replays"),
            (LOCKED_BY, "locked_by"),
            (ASIDE, "aside"),
        ] {
            columns[place] = name;
        }
        columns
    }

    /// The lists of a statement that have about as many values as there are columns.
    fn lists(statement: &str) -> Vec<Vec<String>> {
        let text = without_comments(statement);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let begin = |(at, _)| text[at..].split_once(' ').map(|(_, rest)| list(rest));
        let begins = text.match_indices("SELECT ").chain(text.match_indices("RETURNING "));
        begins.filter_map(begin).filter(|list| list.len() >= LOCKED_BY).collect()
    }

    /// The values up to the end of a list, whole.
    fn list(text: &str) -> Vec<String> {
        let (mut depth, mut values) = (0_usize, vec![String::new()]);
        for (at, character) in text.char_indices() {
            match character {
                '(' => depth += 1,
                ')' if depth == 0 => break,
                ')' => depth -= 1,
                ' ' if depth == 0 && [" FROM ", " WHERE "].iter().any(|end| text[at..].starts_with(end)) => break,
                ',' if depth == 0 => {
                    values.push(String::new());
                    continue;
                }
                _ => {}
            }
            values.last_mut().expect("one at least").push(character);
        }
        values.iter().map(|value| value.trim().to_owned()).collect()
    }

    /// The name of a column, or of the expression in its place.
    fn name(value: &str) -> &str {
        value.trim_matches(['"', '{', '}'])
    }

    /// The places of the values that a row without an event has.
    fn places(values: &[String]) -> Vec<usize> {
        (0..values.len()).filter(|place| values[*place] != "NULL").collect()
    }

    #[test]
    fn every_statement_selects_the_columns_in_their_places() {
        let (fetch, claim) = (include_str!("../sql/fetch.sql"), include_str!("../sql/claim.sql"));
        let next_due = [AVAILABLE_AT, CREATED_AT];
        let all = columns();

        let [aside, plain, due, next] = &lists(fetch)[..] else { panic!("four lists: {:?}", lists(fetch)) };
        for rows in [aside, plain, due] {
            assert_eq!(rows.iter().map(|value| name(value)).collect::<Vec<_>>(), all);
        }
        assert_eq!((next.len(), places(next)), (all.len(), next_due.to_vec()));
        let [interventions] = &lists(AND_INTERVENTIONS)[..] else { panic!("one list") };
        assert_eq!((interventions.len(), places(interventions)), (all.len(), vec![ATTEMPTS, CREATED_AT, LOCKED_BY]));

        let [held, cut, next, taken] = &lists(claim)[..] else { panic!("four lists: {:?}", lists(claim)) };
        assert!(claim.contains(r#"SELECT *, NULL AS "locked_by" FROM taken"#), "the last column of what was taken");
        assert_eq!(taken.iter().map(|value| name(value)).collect::<Vec<_>>(), all[..LOCKED_BY]);
        for (row, values) in [(held, &[SEQ, LOCKED_BY][..]), (cut, &[]), (next, &next_due)] {
            assert_eq!((row.len(), &*places(row)), (LOCKED_BY + 1, values));
        }
    }
}
