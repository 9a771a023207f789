//! The reasons for which every store refuses an operation in the same words.

use super::TableName;
use crate::ownership::NodeMode;

/// The remedy for tables that are missing or of an older version. The program `pillarbox` puts its own command in its place.
pub const MIGRATE: &str = "run `store.migrate()` or `pillarbox migrate`";

/// The remedy for tables that a newer release has migrated, on which this one cannot run.
pub const UPGRADE: &str = "upgrade Pillarbox";

/// The command that creates or upgrades the tables of an outbox, to be pasted into a shell: with `--store` if it is given, and with `--table`
/// unless that is the default.
#[must_use]
pub fn migrate(store: Option<&str>, table: &str) -> String {
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c));
    let quoted = |text: &str| {
        if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
    };
    let store = store.map(|store| format!(" --store {}", quoted(store))).unwrap_or_default();
    let is_default = table == TableName::default().to_string();
    let table = if is_default { String::new() } else { format!(" --table {}", quoted(table)) };
    format!("pillarbox migrate{store}{table}")
}

/// The text of an error whose remedy names a command, with the table in the command.
#[must_use]
pub fn of_table(text: &str, table: &str) -> String {
    let command = migrate(None, table);
    text.replace("`pillarbox migrate`", &format!("`{command}`"))
        .replace("`pillarbox migrate --print`", &format!("`{command} --print`"))
}

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

/// A migration does not get the locks that it needs; `others` names their likely holders.
#[must_use]
pub fn in_use(table: &TableName, others: &str) -> String {
    format!("the tables of {table} are in use{others}; end what keeps them, and migrate again")
}

/// A living node runs in a mode beside which `mode` cannot run.
#[must_use]
pub(crate) fn other_mode(node: &str, its_mode: &str, mode: NodeMode) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_table_unless_it_is_the_default() {
        assert_eq!(migrate(None, "outbox_event"), "pillarbox migrate");
        assert_eq!(
            migrate(Some("a b.db"), "billing.events"),
            "pillarbox migrate --store 'a b.db' --table billing.events"
        );
        let missing = missing_tables(&["events".to_owned()]);
        assert_eq!(of_table(&missing, "outbox_event"), missing);
        assert!(of_table(&missing, "events").ends_with("or `pillarbox migrate --table events`"));
        let table = TableName::parse("events").expect("valid");
        let lost = of_table(&lost(&table, &["events_node".to_owned()]), "events");
        assert!(lost.contains("`pillarbox migrate --table events --print`"), "{lost}");
    }
}
