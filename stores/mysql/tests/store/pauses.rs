//! The columns of the table of pauses are bytes, which take more than names.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use crate::support::{LEASE, node, with_db};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::{Admin as _, Pause, PauseKind, Store as _};

#[tokio::test]
async fn a_row_that_is_no_pause_costs_itself_alone() {
    with_db(async |db| {
        let store = db.store().await;
        let rows = "('type', 'a'), ('typ', 'b'), ('handler', x'ff'), (x'ff', 'c'), ('TYPE', 'd'), ('handler', 'e')";
        db.execute(&format!("INSERT INTO outbox_pause (kind, name) VALUES {rows}")).await;
        db.execute("INSERT INTO outbox_event (event_id, event_type, handler, payload) VALUES ('1', 't', 'b', '{}')")
            .await;
        let told = store.interventions().await.expect("reads what can be read").pauses;
        let names: Vec<(PauseKind, &str)> = told.iter().map(|Pause { kind, name, .. }| (*kind, &**name)).collect();
        assert_eq!(names, [(PauseKind::Type, "a"), (PauseKind::Handler, "e")]);
        assert_eq!(store.pauses().await.expect("lists"), told);
        assert_eq!(store.count_paused().await.expect("counts"), 0, "a wrong kind is not that of a handler");
        store.join(&node("starts"), NodeMode::SingleNode, LEASE).await.expect("joins");
    })
    .await;
}
