//! A program that writes rows may give them any number, and nobody would ever see them.

use crate::support::{events, with_db};
use pillarbox_core::store::{Admin as _, Counts, Store as _};

#[tokio::test]
async fn rows_of_a_status_that_there_is_not_are_counted_by_themselves() {
    with_db(async |db| {
        let store = db.options().connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        db.write(&store, events(5)).await;
        for status in [4, 9, -1] {
            db.execute(&format!("UPDATE outbox_event SET status = {status} WHERE status = 0 ORDER BY seq LIMIT 1"))
                .await;
        }
        let expected = Counts { new: 2, unknown: 3, ..Counts::default() };
        assert_eq!(store.counts().await.expect("counts"), expected);
    })
    .await;
}
