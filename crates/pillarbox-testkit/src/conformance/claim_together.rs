use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::store::{Fetch, FetchedRow};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::Harness;
use crate::events::{all, claimed, columns, events, retry_in, settle_held, some};
use crate::nodes::peer;
use crate::run::{Db, Outcome};

/// Nodes that drain the table at the same time, in small bites and each on a connection of its own, get every row
/// exactly once between them: a row that one is just taking is passed over by the others, and lost to nobody.
pub(super) async fn claim_concurrently_takes_each_row_once<H: Harness>(db: &Db<H>) -> Outcome {
    const NODES: usize = 6;
    const EACH_KIND: usize = 600;
    let store = db.store();
    // Half of the rows have a due time: they are read by another index.
    let preparing = peer(&*store).await?;
    let mut written = events(EACH_KIND)?;
    let timed = db.write(written.clone()).await?;
    assert_eq!(claimed(&*store, &preparing, &all()).await?, timed);
    settle_held(&*store, &preparing, &timed, &retry_in(Duration::ZERO)).await?;
    let plain = events(EACH_KIND)?;
    let seqs = [timed, db.write(plain.clone()).await?].concat();
    written.extend(plain);

    let stores = try_join_all((0..NODES).map(|_| db.connect())).await?;
    let start = Arc::new(Barrier::new(NODES));
    let mut tasks = JoinSet::new();
    for store in stores.iter().cloned() {
        let node = peer(&*store).await?;
        let start = Arc::clone(&start);
        tasks.spawn(async move {
            let mut mine: Vec<i64> = Vec::new();
            start.wait().await;
            loop {
                let rows = store.claim(&node, &Fetch { exclude: mine.clone(), ..some(7) }).await?.rows;
                // More than there are is enough to fail.
                if rows.is_empty() || mine.len() > 2 * EACH_KIND {
                    return Ok::<_, pillarbox_core::error::StoreError>((node, mine));
                }
                mine.extend(rows.iter().map(FetchedRow::seq));
            }
        });
    }
    let shares = tasks.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut taken: Vec<i64> = shares.iter().flat_map(|(_, mine)| mine.iter().copied()).collect();
    assert_eq!(taken.len(), 2 * EACH_KIND, "rows that were handed out");
    taken.sort_unstable();
    assert_eq!(taken, seqs, "each of them once");
    // The table says the same; a sample of the rows will do.
    for event in written.iter().step_by(37) {
        let row = columns(db, event).await?;
        let holder = shares.iter().find(|(_, mine)| mine.contains(&row.seq)).map(|(node, _)| node.as_str());
        assert_eq!(row.locked_by.as_deref(), holder, "row {}", row.seq);
    }
    Ok(())
}
