use std::error::Error;

use bytes::BytesMut;
use pillarbox_core::write::Bind;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A value of the store's statement, as the driver takes it.
#[derive(Debug)]
pub(crate) struct Value<'a>(pub(crate) &'a Bind<'a>);

impl Value<'_> {
    /// The type that the statement's own casts give to this placeholder.
    pub(crate) fn sql_type(&self) -> Type {
        match self.0 {
            Bind::Int(_) => Type::INT8,
            Bind::Text(_) => Type::TEXT,
            Bind::Bytes(_) => Type::BYTEA,
            Bind::Ints(_) => Type::INT8_ARRAY,
            Bind::Texts(_) => Type::TEXT_ARRAY,
            Bind::ByteArrays(_) => Type::BYTEA_ARRAY,
            _ => Type::UNKNOWN,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Bind::Int(value) => value.to_sql(ty, out),
            Bind::Text(value) => value.to_sql(ty, out),
            Bind::Bytes(value) => value.to_sql(ty, out),
            Bind::Ints(values) => values.to_sql(ty, out),
            Bind::Texts(values) => values.to_sql(ty, out),
            Bind::ByteArrays(values) => values.to_sql(ty, out),
            _ => Err("the statement binds a kind of value that this adapter does not know; upgrade it".into()),
        }
    }

    /// Every type: which one a value has is checked against [`sql_type`](Self::sql_type), by the driver's own types.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
