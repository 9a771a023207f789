//! The columns of the tables: the existing ones, and the ones that statements add.

use crate::answer::{is_true, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::store::Inner;

/// A column of a table that was found.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) is_primary: bool,
    /// Its type as the catalog writes it, such as `int(11)`.
    pub(super) data_type: String,
    /// True if every `INSERT` has to give it a value.
    pub(super) is_required: bool,
}

impl Column {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// True if it is of this type, as SQL writes it. MariaDB's catalog adds the width at which a number is displayed.
    fn is_of(&self, data_type: &str) -> bool {
        let found = self.data_type.to_ascii_lowercase();
        let rest = found.strip_prefix(&data_type.to_ascii_lowercase());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('(') && rest.ends_with(')'))
    }
}

/// The columns of a table; none, if it does not exist or the user has no privilege on it.
pub(super) async fn columns(store: &Inner, session: &mut Session, name: &str) -> Result<Vec<Column>, Failure> {
    let values = [("schema", &Literal::optional_text(store.table.schema())), ("table", &Literal::text(name))];
    let answers = session.run(fill(&store.sql.table_columns, &values)).await?;
    let column = |row| {
        Ok(Column {
            name: text(row, 0)?.unwrap_or_default().to_owned(),
            is_primary: text(row, 1)? == Some("PRI"),
            data_type: text(row, 2)?.unwrap_or_default().to_owned(),
            is_required: is_true(row, 3)?,
        })
    };
    answers.rows(0).iter().map(column).collect()
}

/// The columns that a statement adds to a table, each with its type.
pub(super) fn added(statement: &str) -> impl Iterator<Item = (&str, &str)> {
    statement.split("ADD COLUMN `").skip(1).filter_map(|rest| {
        let (name, definition) = rest.split_once("` ")?;
        Some((name, definition.split([' ', ',', '\n']).next()?))
    })
}

/// The columns of somebody else's that have the names of columns that a statement adds. The statement adds all of them at once, so
/// where all are there with their types it has run, and none is somebody else's.
pub(super) fn taken<'a>(statement: &'a str, found: &[Column]) -> Vec<&'a str> {
    let find = |name| found.iter().find(|column| column.is_named(name));
    if added(statement).all(|(name, data_type)| find(name).is_some_and(|column| column.is_of(data_type))) {
        return Vec::new();
    }
    added(statement).map(|(name, _)| name).filter(|name| find(name).is_some()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::schema) fn column(name: &str, data_type: &str) -> Column {
        Column { name: name.to_owned(), is_primary: false, data_type: data_type.to_owned(), is_required: false }
    }

    #[test]
    fn columns_count_as_added_only_all_together_and_with_their_types() {
        let statement =
            "ALTER TABLE `t`\n    ADD COLUMN `a` INT,\n    ADD COLUMN `b` VARCHAR(300)\n    /*M! , LOCK = EXCLUSIVE */";
        assert_eq!(added(statement).collect::<Vec<_>>(), [("a", "INT"), ("b", "VARCHAR(300)")]);
        type There<'a> = &'a [(&'a str, &'a str)];
        let table: [(There<'_>, &[&str]); 7] = [
            (&[], &[]),
            (&[("a", "int(11)"), ("b", "varchar(300)")], &[]),
            (&[("A", "int"), ("b", "varchar(300)"), ("c", "text")], &[]),
            (&[("a", "int(11)"), ("c", "text")], &["a"]),
            (&[("b", "varchar(300)")], &["b"]),
            (&[("a", "int(11)"), ("b", "varchar(30)")], &["a", "b"]),
            (&[("a", "int(11) unsigned"), ("b", "varchar(300)")], &["a", "b"]),
        ];
        for (there, expected) in table {
            let found: Vec<Column> = there.iter().map(|(name, data_type)| column(name, data_type)).collect();
            assert_eq!(taken(statement, &found), expected, "{there:?}");
        }
        assert!(taken("ALTER TABLE `t` ADD KEY `k` (`a`)", &[column("a", "int")]).is_empty());
    }
}
