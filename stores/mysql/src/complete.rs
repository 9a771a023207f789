use std::sync::Arc;

use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::TableName;
use pillarbox_core::write::{Action, Bind, Command, Statement};

use crate::sql::{render, without_comments};

/// The condition under [`Fence::Table`].
const OWNS_THE_TABLE: &str =
    "\n    AND EXISTS (SELECT 1 FROM {partition} p WHERE p.`partition` = 0 AND p.`node_id` = ?)";
/// The condition under [`Fence::Partition`].
const ITS_PARTITION_IS_OWNED: &str =
    "\n    AND (SELECT p.`node_id` FROM {partition} p WHERE p.`partition` = e.`partition`) = ?";
/// The condition under [`Fence::Row`].
const HOLDS_THE_ROW: &str = "\n    AND (e.`locked_by` = ? OR e.`locked_by` = CONCAT(?, '!'))";

/// The statements that complete a row in the transaction of its handler, by the kind of a node's right to it.
#[derive(Debug)]
pub(crate) struct Completions {
    /// The fence, which keeps the node registered until the transaction ends.
    fence: Arc<str>,
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
        let file = |text: &str| Arc::<str>::from(render(&without_comments(text), table));
        let texts = |mine: &str| {
            let fenced = |text: &str| file(&text.replace("{and_is_its_own}", mine));
            let done = |position| fenced(&include_str!("../sql/complete.sql").replace("{and_position}", position));
            Texts {
                done: done(""),
                done_as: done(", e.`delivered_as` = ?"),
                removed: fenced(include_str!("../sql/complete_removed.sql")),
            }
        };
        Self {
            fence: file(include_str!("../sql/complete_fence.sql")),
            table: texts(OWNS_THE_TABLE),
            partition: texts(ITS_PARTITION_IS_OWNED),
            row: texts(HOLDS_THE_ROW),
        }
    }

    pub(crate) fn command<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        let Verdict { row, expected, change } = verdict;
        let (texts, times) = match fence {
            Fence::Table => (&self.table, 2),
            Fence::Partition => (&self.partition, 2),
            Fence::Row => (&self.row, 3),
        };
        let named = || Bind::Text(Some(node.as_str()));
        let (change, position) = match change {
            Change::DeliveredAs(position) => (&texts.done_as, Some(Bind::Text(Some(position.as_str())))),
            Change::Remove => (&texts.removed, None),
            _ => (&texts.done, None),
        };
        let mut binds: Vec<Bind<'_>> = position.into_iter().collect();
        binds.extend([
            Bind::Int(Some(row.seq)),
            Bind::Text(Some(row.event_id.as_str())),
            Bind::Text(row.handler.as_deref()),
            Bind::Int(Some(expected.attempts.into())),
            Bind::Int(Some(expected.replays.cast_signed().into())),
        ]);
        binds.extend((0..times).map(|_| named()));
        let statements = vec![
            Statement { sql: Arc::clone(&self.fence), binds: vec![named()], reusable: true },
            Statement { sql: Arc::clone(change), binds, reusable: true },
        ];
        Command { action: Action::Complete { node, fence, verdict }, statements }
    }
}
