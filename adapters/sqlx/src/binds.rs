use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use sqlx::{ColumnIndex, Decode, Error, Row, Type};

/// The error for a statement with a kind of value that its database has no type for: one of another store's.
pub(crate) fn unsupported(database: &str) -> Error {
    Error::Encode(format!("the statement binds a kind of value that {database} cannot take").into())
}

/// The rows that a probe has found.
pub(crate) fn row_ids<'r, R>(rows: &'r [R]) -> Result<Vec<RowId>, Error>
where
    R: Row,
    usize: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    let id = |row: &'r R| {
        let (event_id, handler): (String, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
        let event_id = EventId::from_stored(&event_id);
        Ok(RowId { seq: row.try_get(0)?, event_id, handler: handler.map(String::into_boxed_str) })
    };
    rows.iter().map(id).collect()
}
