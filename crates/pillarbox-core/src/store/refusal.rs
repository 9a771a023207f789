//! The reasons for which every store refuses an operation in the same words.

use crate::ownership::Mode;

/// The remedy for tables that are missing or of an older version. The program `pillarbox` puts its own command in its place.
pub const MIGRATE: &str = "run `store.migrate()` or `pillarbox migrate`";

/// A living node runs in a mode beside which `mode` cannot run.
#[must_use]
pub fn other_mode(node: &str, its_mode: &str, mode: Mode) -> String {
    format!(
        "node `{node}` runs in mode `{its_mode}` on this table, beside which mode `{mode}` cannot run; stop it, or start this node \
         in mode `{its_mode}`"
    )
}

/// A living node delivers from the table, so that its pending rows are not to be deleted.
#[must_use]
pub fn still_delivers(node: &str) -> String {
    format!("node `{node}` delivers from this table, so its pending rows are not to be purged; stop it first")
}

/// The store has been closed.
pub const CLOSED: &str = "the store has been closed; open it again";
