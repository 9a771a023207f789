use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::write::{Action, Bind, Command, Statement};

use crate::sql::Sql;

/// Fails if no transaction is open: a handler may have ended its own by SQL, and its writes in it may be rolled back.
const STILL_OPEN: &str = "SAVEPOINT pillarbox";

/// The statements that make a row DONE in the transaction of its handler. They fence as a settle does.
pub(crate) fn command<'a>(
    sql: &Sql,
    reusable: bool,
    node: &'a NodeId,
    fence: Fence,
    verdict: &'a Verdict,
) -> Command<'a> {
    let Verdict { row, expected, change } = verdict;
    let mut binds = vec![
        Bind::Text(Some(node.as_str())),
        Bind::Int(Some(row.seq)),
        Bind::Text(Some(row.event_id.as_str())),
        Bind::Text(row.handler.as_deref()),
        Bind::Int(Some(expected.attempts.into())),
        Bind::Int(Some(expected.replays.cast_signed().into())),
    ];
    let sql = match change {
        Change::DeliveredAs(position) => {
            binds.push(Bind::Text(Some(position.as_str())));
            &sql.complete_as
        }
        Change::Remove => &sql.complete_removed,
        _ => &sql.complete,
    };
    let still_open = Statement { sql: STILL_OPEN.into(), binds: Vec::new(), reusable };
    let change = Statement { sql: sql.of(fence).into(), binds, reusable };
    Command { action: Action::Complete { node, fence, verdict }, statements: vec![still_open, change] }
}
