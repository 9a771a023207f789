//! The reasons for which every store refuses an operation in the same words.

use super::TableName;
use crate::ownership::Mode;

/// The remedy for tables that are missing or of an older version. The program `pillarbox` puts its own command in its place.
pub const MIGRATE: &str = "run `store.migrate()` or `pillarbox migrate`";

/// Tables are not there, or not as this release needs them.
#[must_use]
pub fn unmigrated(problem: &str) -> String {
    format!("{problem}; {MIGRATE}")
}

/// Tables are missing, which have these names.
#[must_use]
pub fn missing_tables(names: &[String]) -> String {
    unmigrated(&format!("missing tables: {}", names.join(", ")))
}

/// The user has no privilege on tables that have these names, if they are there.
#[must_use]
pub fn unseen_tables(names: &[String]) -> String {
    format!(
        "the user has no privilege on these tables, or they are not there: {}; grant it its privileges on them, or else {MIGRATE}",
        names.join(", ")
    )
}

/// Tables or indexes of an outbox are missing that a migration has made, so that another run would find nothing to do.
#[must_use]
pub fn lost(table: &TableName, names: &[String]) -> String {
    let missing = names.join(", ");
    let is_event = |name: &String| name.rsplit('.').next().map(|name| name.trim_matches('"')) == Some(table.event());
    if names.iter().any(is_event) {
        let (migration, other) = (table.beside("migration"), table.sharing());
        return format!(
            "missing: {missing}, though `{migration}` beside it is there; if that belongs to an outbox in the table `{other}`, give this one another \
             name, since the two would share all tables beside them; else restore it"
        );
    }
    format!(
        "missing: {missing}, which this version of the tables includes; restore it, or create it with the statements that `pillarbox migrate --print` prints"
    )
}

/// The table of partitions has no rows.
#[must_use]
pub fn no_partitions() -> String {
    let problem = "the table of partitions is empty, without its rows no node can own any";
    unmigrated(&format!("{problem}; restore it, or drop the tables"))
}

/// A migration does not get the locks that it needs; `others` says who may have them.
#[must_use]
pub fn in_use(table: &TableName, others: &str) -> String {
    format!("the tables of {table} are in use{others}; end what keeps them, and migrate again")
}

/// A living node runs in a mode beside which `mode` cannot run.
#[must_use]
pub(crate) fn other_mode(node: &str, its_mode: &str, mode: Mode) -> String {
    format!(
        "node `{node}` delivers from this table in mode `{its_mode}`, and all nodes have to run in the same mode; stop it, or start \
         this node in mode `{its_mode}` instead of `{mode}`"
    )
}

/// A living node delivers from the table, so that its pending rows are not to be deleted.
#[must_use]
pub fn still_delivers(node: &str) -> String {
    format!("node `{node}` delivers from this table, so its pending rows are not to be purged; stop it first")
}

/// The store has been closed.
pub const CLOSED: &str = "the store has been closed; open it again";
