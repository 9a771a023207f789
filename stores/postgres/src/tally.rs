//! The tally of a transaction is a setting of its own, `SET LOCAL`: the server takes it back with the rows when they are rolled back to a
//! savepoint, and forgets it when the transaction ends.

use std::fmt::Write as _;

use pillarbox_core::store::Tally;
use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::{PostgresStore, insert};

impl Tally for PostgresStore {
    fn insert<'a>(&self, rows: &'a [NewRow], number: i64) -> Vec<Statement<'a>> {
        let sql = &self.inner().sql;
        let mut statements = insert::statements([&sql.insert_one_tallied, &sql.insert_many_tallied], rows);
        for statement in &mut statements {
            statement.binds.push(Bind::Int(Some(number)));
        }
        statements
    }

    fn sql(&self, sum: i64) -> String {
        self.inner().sql.tally.replace("$1", &format!("'{sum}'"))
    }
}

/// The name of the setting for a table, whose name is given as SQL has it. The server takes letters, digits and `_`, and tells no
/// capital letter from a small one.
pub(crate) fn setting(table: &str) -> String {
    table.bytes().fold("pillarbox.tally_".to_owned(), |mut name, byte| {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            name.push(byte.into());
        } else {
            // Writing into a text cannot fail.
            let _ = write!(name, "_{byte:02x}");
        }
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_setting_of_its_own_whose_name_the_server_takes() {
        assert_eq!(setting(r#""outbox_event""#), "pillarbox.tally__22outbox_5fevent_22");
        let names = [r#""a"."b""#, r#""a.b""#, r#""A"."b""#, r#""a_22_2e_22b""#].map(setting);
        let each: std::collections::HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(each.len(), names.len(), "{names:?}");
        let is_taken = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        assert!(names.iter().all(is_taken), "{names:?}");
    }
}
