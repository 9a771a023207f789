use std::time::Duration;

use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::Store;

use crate::run::{Db, Outcome};
use crate::{FailoverDrill, Harness};

/// So that the next renewal is near.
const LEASE: Duration = Duration::from_secs(6);

/// The database goes back to an earlier state under a running node, and gives numbers again. Events are delivered, others run or wait
/// in memory; all are lost, and new ones get their numbers. Each of these is delivered, and none is DONE without a call; where keys
/// keep their order, in that order.
pub(super) async fn going_back<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let drill = FailoverDrill::of(mode, db.store(), LEASE).await?;
    let write = async |_: &dyn Store, events| db.write(events).await.map(drop);
    drill.deliver(60, &write).await?;
    drill.hold(60, &write).await?;
    db.go_back().await?;
    let write_anew = async |_: &dyn Store, events| {
        assert_eq!(db.write(events).await?.first(), Some(&1), "numbers are given again");
        Ok(())
    };
    drill.finish(150, write_anew).await
}
