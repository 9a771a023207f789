use std::sync::Arc;

use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::TableName;
use pillarbox_core::write::{Action, Bind, Command, Statement};

use crate::sql::{HELD, OWNED, render};

/// True if the node `?1` is the one owner of all partitions.
const OWNS_ALL: &str = "EXISTS (SELECT 1 FROM {partition} AS owned JOIN {node} USING (node_id) WHERE owned.partition = 0 AND node_id = ?1)";

/// True if the node `?1` is registered.
const REGISTERED: &str = "EXISTS (SELECT 1 FROM {node} WHERE node_id = ?1)";

/// Fails unless the transaction is still the one that was marked: outside of a transaction the change would stand by itself.
const UNMARK: &str = "RELEASE SAVEPOINT pillarbox_handler";

/// The statement that a handler's transaction begins with. A savepoint ends with its transaction, however that ends.
pub(crate) fn mark() -> Statement<'static> {
    plain("SAVEPOINT pillarbox_handler")
}

fn plain(sql: &str) -> Statement<'static> {
    Statement { sql: sql.into(), binds: Vec::new(), reusable: true }
}

/// The statements that complete a row in the transaction of its handler, by the kind of a node's right to it.
#[derive(Debug)]
pub(crate) struct Completions {
    table: Texts,
    partition: Texts,
    row: Texts,
}

#[derive(Debug)]
struct Texts {
    done: Arc<str>,
    done_as: Arc<str>,
    removed: Arc<str>,
}

impl Completions {
    pub(crate) fn new(table: &TableName) -> Self {
        let texts = |mine: &str| {
            let file = |text: &str| render(table, &text.replace("{mine}", mine)).into();
            let done = |position| file(&include_str!("../sql/complete.sql").replace("{and_position}", position));
            Texts {
                done: done(""),
                done_as: done(", delivered_as = ?7"),
                removed: file(include_str!("../sql/complete_removed.sql")),
            }
        };
        Self {
            table: texts(OWNS_ALL),
            partition: texts(&format!("{OWNED} AND {REGISTERED}")),
            row: texts(&format!("{HELD} AND {REGISTERED}")),
        }
    }

    pub(crate) fn command<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        let Verdict { row, expected, change } = verdict;
        let texts = match fence {
            Fence::Table => &self.table,
            Fence::Partition => &self.partition,
            Fence::Row => &self.row,
        };
        let mut binds = vec![
            Bind::Text(Some(node.as_str())),
            Bind::Int(Some(row.seq)),
            Bind::Text(Some(row.event_id.as_str())),
            Bind::Text(row.handler.as_deref()),
            Bind::Int(Some(expected.attempts.into())),
            Bind::Int(Some(expected.replays.into())),
        ];
        let sql = match change {
            Change::DeliveredAs(position) => {
                binds.push(Bind::Text(Some(position.as_str())));
                &texts.done_as
            }
            Change::Remove => &texts.removed,
            _ => &texts.done,
        };
        let statements = vec![plain(UNMARK), Statement { sql: Arc::clone(sql), binds, reusable: true }];
        Command { action: Action::Complete { node, fence, verdict }, statements }
    }
}
