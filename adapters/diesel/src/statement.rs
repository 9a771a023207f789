use diesel::QueryResult;
use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::Error;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Untyped};
use pillarbox_core::write::{Bind, Statement};

/// A statement of the store with its values. The text is the store's own, none of it comes from a user.
///
/// Unlike `sql_query`, which prepares anew each time, it is kept in the connection's cache if it comes again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a>(pub(crate) &'a Statement<'a>);

/// A database of diesel's that takes values of the store's statements.
pub(crate) trait Binds: Backend {
    /// Hands over a value.
    fn push<'b>(bind: &'b Bind<'b>, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()>;
}

macro_rules! binds {
    ($database:ty $(, $array:ident => $element:ty)*) => {
        impl Binds for $database {
            fn push<'b>(bind: &'b Bind<'b>, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
                match bind {
                    Bind::Int(value) => out.push_bind_param_value_only::<Nullable<BigInt>, _>(value),
                    Bind::Text(value) => out.push_bind_param_value_only::<Nullable<Text>, _>(value),
                    Bind::Bytes(value) => out.push_bind_param_value_only::<Nullable<Binary>, _>(value),
                    $(Bind::$array(values) => {
                        out.push_bind_param_value_only::<diesel::sql_types::Array<Nullable<$element>>, _>(values)
                    })*
                    _ => Err(Error::SerializationError(UNSUPPORTED.into())),
                }
            }
        }
    };
}

#[cfg(any(feature = "postgres", feature = "async-postgres"))]
binds!(diesel::pg::Pg, Ints => BigInt, Texts => Text, ByteArrays => Binary);
#[cfg(feature = "sqlite")]
binds!(diesel::sqlite::Sqlite);
#[cfg(feature = "async-mysql")]
binds!(diesel::mysql::Mysql);

/// The error for a statement of another store's.
const UNSUPPORTED: &str = "the statement binds a kind of value that this database cannot take";

impl<DB: Binds> QueryFragment<DB> for Bound<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if !self.0.reusable {
            out.unsafe_to_cache_prepared();
        }
        out.push_sql(&self.0.sql);
        self.0.binds.iter().try_for_each(|bind| DB::push(bind, &mut out))
    }
}

impl QueryId for Bound<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Bound<'_> {
    type SqlType = Untyped;
}

impl<C> diesel::query_dsl::RunQueryDsl<C> for Bound<'_> {}
