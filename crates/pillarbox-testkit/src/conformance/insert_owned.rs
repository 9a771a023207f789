use pillarbox_core::handle::Path;
use pillarbox_engine::run::Outbox;

use crate::Harness;
use crate::events::{HOUR, all, claimed, columns, delayed, event, events, holders};
use crate::nodes::peer;
use crate::recorder::gated;
use crate::run::{Db, Outcome};

/// Rows that are to be delivered from a node's memory say so from their commit on, one by one and in a batch, and no other
/// node can claim them; rows beside them in the batch that are not, name nobody.
pub(super) async fn insert_names_the_owner_it_is_given<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = gated();
    // Once the outbox has found this row, it is known to be at work.
    db.write(vec![event()?]).await?;
    // Nobody but an outbox gives rows an owner: it does so for what is written through its guard.
    let unpolled = Outbox::multi_node(db.connect().await?).poll_interval(HOUR, HOUR);
    let builder = unpolled.workers(8).handle_all(recorder.clone());
    let outbox = builder.start().await?;
    recorder.wait_for_calls(1).await;

    let (alone, mut batch) = (event()?, events(3)?);
    batch.insert(1, delayed()?);
    for written in [vec![alone.clone()], batch.clone()] {
        let mut transaction = outbox.begin(db.source()).await?;
        outbox.write_all(&mut transaction, written).await?;
        transaction.commit().await?;
    }
    recorder.wait_for_calls(5).await;
    // All of them are still in the handler: nothing has been recorded of them but what the insert did.
    let node = recorder.calls().first().map(|call| call.node.to_string());
    assert_eq!(columns(db, &alone).await?.locked_by, node);
    assert_eq!(holders(db, &batch).await?, [node.clone(), None, node.clone(), node]);
    assert!(recorder.calls()[1..].iter().all(|call| call.path == Path::Hot), "from memory: {:?}", recorder.calls());
    let store = db.store();
    let neighbour = peer(&*store).await?;
    assert!(claimed(&*store, &neighbour, &all()).await?.is_empty());

    gate.close();
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 5);
    assert_eq!(store.counts().await?.done, 5);
    Ok(())
}
