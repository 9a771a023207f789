use diesel::backend::Backend;
use diesel::deserialize::{FromSql, QueryableByName, Result};
use diesel::row::NamedRow;
use diesel::sql_types::{BigInt, Nullable, Text};
use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;

/// The `seq` that an insert returns in its only column.
#[derive(Debug)]
pub(crate) struct Seq(pub(crate) i64);

impl<DB: Backend> QueryableByName<DB> for Seq
where
    i64: FromSql<BigInt, DB>,
{
    fn build<'a>(row: &impl NamedRow<'a, DB>) -> Result<Self> {
        Ok(Self(row.get_value::<BigInt, i64, _>(0)?))
    }
}

/// The text that a query returns in its only column.
#[derive(Debug)]
pub(crate) struct Line(pub(crate) String);

impl<DB: Backend> QueryableByName<DB> for Line
where
    String: FromSql<Text, DB>,
{
    fn build<'a>(row: &impl NamedRow<'a, DB>) -> Result<Self> {
        Ok(Self(row.get_value::<Text, String, _>(0)?))
    }
}

/// A row that a probe has found.
#[derive(Debug)]
pub(crate) struct FoundRow(pub(crate) RowId);

impl<DB: Backend> QueryableByName<DB> for FoundRow
where
    i64: FromSql<BigInt, DB>,
    String: FromSql<Text, DB>,
{
    fn build<'a>(row: &impl NamedRow<'a, DB>) -> Result<Self> {
        let event_id = EventId::from_stored(&row.get_value::<Text, String, _>(1)?);
        let handler = row.get_value::<Nullable<Text>, Option<String>, _>(2)?.map(String::into_boxed_str);
        Ok(Self(RowId { seq: row.get_value::<BigInt, i64, _>(0)?, event_id, handler }))
    }
}
