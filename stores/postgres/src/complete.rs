use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::write::{Action, Bind, Command, Statement};

use crate::sql::Sql;

/// The statement that makes a row DONE in the transaction of its handler. It fences as a settle does.
pub(crate) fn command<'a>(sql: &Sql, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
    let Verdict { row, expected, change } = verdict;
    let sql = if *change == Change::Remove { &sql.complete_removed } else { &sql.complete };
    let binds = vec![
        Bind::Text(Some(node.as_str())),
        Bind::Int(Some(row.seq)),
        Bind::Text(Some(row.event_id.as_str())),
        Bind::Text(row.handler.as_deref()),
        Bind::Int(Some(expected.attempts.into())),
        Bind::Int(Some(expected.replays.cast_signed().into())),
    ];
    let statement = Statement { sql: sql.of(fence).into(), binds, reusable: true };
    Command { action: Action::Complete { node, fence, verdict }, statements: vec![statement] }
}
