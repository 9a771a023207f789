//! The part that all filters have: the attributes of a row.

use pillarbox_core::store::Attributes;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{SqlStr, Sqlite, query};

/// A statement to whose first places the attributes are bound.
pub(super) fn with_attributes<'q>(
    statement: &SqlStr,
    attributes: &'q Attributes,
) -> Query<'q, Sqlite, SqliteArguments> {
    let texts = attributes.texts().into_iter();
    texts.fold(query(statement.clone()), |query, wanted| query.bind(wanted.as_deref()))
}
