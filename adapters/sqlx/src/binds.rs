use sqlx::Error;

/// The error for a statement with a kind of value that its database has no type for: one of another store's.
pub(crate) fn unsupported(database: &str) -> Error {
    Error::Encode(format!("the statement binds a kind of value that {database} cannot take").into())
}
