use mysql_async::{Row, Value};
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::StoreErrorKind;

use crate::error::Failure;

/// The answer of each statement of a script.
#[derive(Debug, Default)]
pub(crate) struct Answers(pub(crate) Vec<Answer>);

/// The rows of a query, or the number of rows that a change matched.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    pub(crate) matched: u64,
}

impl Answers {
    /// The rows that the statement at `index` returned; none, if the script ended before.
    pub(crate) fn rows(&self, index: usize) -> &[Row] {
        self.0.get(index).map_or(&[], |answer| &answer.rows)
    }

    /// The first of them.
    pub(crate) fn first(&self, index: usize) -> Option<&Row> {
        self.rows(index).first()
    }

    /// The number of rows that the statement at `index` matched.
    pub(crate) fn matched(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |answer| answer.matched)
    }

    /// The first column of all rows of the statement at `index`.
    pub(crate) fn ints(&self, index: usize) -> Result<Vec<i64>, Failure> {
        self.rows(index).iter().map(|row| int(row, 0)).collect()
    }
}

/// The bytes of a column; the server sends all values as text.
pub(crate) fn bytes(row: &Row, index: usize) -> Result<Option<&[u8]>, Failure> {
    match row.as_ref(index) {
        Some(Value::NULL) => Ok(None),
        Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
        _ => Err(unexpected(index, "is missing, or not text")),
    }
}

pub(crate) fn text(row: &Row, index: usize) -> Result<Option<&str>, Failure> {
    let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| unexpected(index, "is not UTF-8"));
    bytes(row, index)?.map(utf8).transpose()
}

pub(crate) fn owned(row: &Row, index: usize) -> Result<Option<String>, Failure> {
    Ok(text(row, index)?.map(str::to_owned))
}

pub(crate) fn optional_int(row: &Row, index: usize) -> Result<Option<i64>, Failure> {
    let number = |text: &str| text.parse().map_err(|_| unexpected(index, "is not a 64-bit number"));
    text(row, index)?.map(number).transpose()
}

pub(crate) fn int(row: &Row, index: usize) -> Result<i64, Failure> {
    optional_int(row, index)?.ok_or_else(|| unexpected(index, "is NULL"))
}

pub(crate) fn time(row: &Row, index: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(optional_int(row, index)?.map(Timestamp::from_micros))
}

/// For columns that cannot be NULL, should they be.
pub(crate) const EPOCH: Timestamp = Timestamp::from_micros(0);

/// A condition, which SQL answers with 1 or 0.
pub(crate) fn is_true(row: &Row, index: usize) -> Result<bool, Failure> {
    Ok(int(row, index)? != 0)
}

/// A number of rows.
pub(crate) fn count(row: &Row, index: usize) -> Result<u64, Failure> {
    u64::try_from(int(row, index)?).map_err(|_| unexpected(index, "is negative"))
}

fn unexpected(index: usize, problem: &str) -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, format!("column {} of the answer {problem}", index + 1))
}
