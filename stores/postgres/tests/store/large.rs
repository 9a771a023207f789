//! Rows whose payload and headers are too large to be read.

use pillarbox_core::event::limits;
use pillarbox_core::store::{FetchedRow, Store as _};

use crate::support::{claimer, events, fetch, with_db};

/// What is too large stays in the table, whatever the server makes of it there.
#[tokio::test]
async fn rows_that_are_too_large_stay_in_the_table() {
    with_db(async |db| {
        let store = db.store().await;
        let table = format!("{}.outbox_event", db.schema);
        let seqs = db.write(&store, events(3)).await;
        let node = claimer(&store, "node").await;
        // The second is less than two megabytes where it is compressed.
        for (storage, bytes) in [("EXTERNAL", limits::ROW_BYTES), ("EXTENDED", 10 * limits::ROW_BYTES)] {
            let sql = format!(
                "ALTER TABLE {table} ALTER COLUMN payload SET STORAGE {storage};
                 UPDATE {table} SET payload = to_json(repeat('x', {bytes})) WHERE seq = {}",
                seqs[1]
            );
            db.execute(&sql).await;
            for fetched in
                [store.fetch(&fetch(10)).await.expect("fetches"), store.claim(&node, &fetch(10)).await.expect("claims")]
            {
                let [FetchedRow::Row(_), FetchedRow::Broken(large), FetchedRow::Row(_)] = &fetched.rows[..] else {
                    panic!("{storage}: {:?}", fetched.rows);
                };
                assert_eq!((large.seq, large.content_bytes), (seqs[1], 0), "{storage}");
                let expected = format!(
                    "payload cannot be read: with the headers it has {} bytes, over the limit of 16000000",
                    bytes + 2
                );
                assert_eq!(large.reason, expected, "{storage}");
            }
        }
    })
    .await;
}
