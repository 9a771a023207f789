use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Holding, NodeId, Partitions, Share, spread};
use crate::clock::Random;
use crate::queue::{Intake, KeyLanes};
use crate::retry::{Pause, jittered};
use crate::store::Store;

/// How often to look who is there and what is free: a node that leaves is replaced within a second.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// The same on a node that has had nothing to do for a while.
const LOOK_EVERY_IDLE: Duration = Duration::from_millis(1600);
/// The same if there is no other node: whoever comes waits for its share that long, and this one delivers meanwhile.
const LOOK_EVERY_ALONE: Duration = Duration::from_secs(5);
/// The same right after partitions came or went, and then twice as long each time: nodes that start together find each other.
const LOOK_SOON: Duration = Duration::from_millis(100);
/// For how long after the last event there is work.
const BUSY_FOR: Duration = Duration::from_secs(60);
/// How often to see whether what is to be given away has ended.
const ENDED_YET: Duration = Duration::from_millis(5);

/// Takes this node's share of the partitions, and gives away what is beyond it.
///
/// What is to be given away is first left alone: no further event of it begins. When those that run have ended and their
/// verdicts are recorded, it is given. After the time that a shutdown would have, it is given regardless: verdicts that come
/// later are dropped here, and would be refused by the table.
#[derive(Debug)]
pub(crate) struct Sharer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) intake: Arc<Intake>,
    pub(crate) lanes: Arc<KeyLanes>,
    pub(crate) random: Arc<dyn Random>,
    /// How long running events may take to end before their partitions are given away.
    pub(crate) patience: Duration,
    /// Cancelled when this node turns out to have been cleared away.
    pub(crate) lost: CancellationToken,
    pub(crate) stop: CancellationToken,
}

impl Sharer {
    pub(crate) async fn run(self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.share()).await;
    }

    async fn share(&self) {
        let mut pause = Pause::default();
        let mut work = Work::default();
        let mut give = Partitions::NONE;
        let mut soon = LOOK_SOON;
        loop {
            let beat = &self.intake.pulse.share;
            match beat.ask(self.store.share(&self.node, give)).await {
                Ok(Share::Member(holding)) => {
                    if pause.is_over() {
                        tracing::info!("partitions can be shared again");
                    }
                    let (before, _) = self.lanes.assignment();
                    give = self.hold(&holding).await;
                    let (after, _) = self.lanes.assignment();
                    soon = if before == after { (soon * 2).min(LOOK_EVERY_ALONE) } else { LOOK_SOON };
                    if give.is_empty() {
                        let every = match (work.is_recent(&self.intake), holding.next_expiry) {
                            (true, _) => LOOK_EVERY,
                            (false, Some(_)) => LOOK_EVERY_IDLE,
                            (false, None) => LOOK_EVERY_ALONE,
                        };
                        let look = jittered(every.min(soon), &*self.random);
                        beat.sleep(holding.next_expiry.map_or(look, |expiry| look.min(expiry + ENDED_YET))).await;
                    }
                }
                Ok(Share::Lost) => return self.lost.cancel(),
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "partitions cannot be shared; trying again");
                    }
                    beat.sleep(pause.next(&*self.random)).await;
                }
            }
        }
    }

    /// Delivers what is this node's share, and waits until the rest can be given away; returns that.
    async fn hold(&self, holding: &Holding) -> Partitions {
        let surplus = spread::surplus(holding.owned, holding.target.clone());
        let active = holding.owned.difference(surplus);
        let (_, before) = self.lanes.assignment();
        let dropped = self.lanes.assign(active, holding.unclean);
        self.intake.registry.release(dropped);
        if active != before {
            tracing::info!(node = %self.node, partitions = active.len(), owned = ?active, "this node's share of the partitions");
        }
        if !surplus.is_empty() {
            let deadline = Instant::now() + self.patience;
            if timeout_at(deadline, self.ended(surplus)).await.is_err() {
                tracing::warn!(node = %self.node, partitions = ?surplus, "events still run of partitions that are given away; they are delivered again");
                self.lanes.revoke(surplus);
            }
        }
        surplus
    }

    /// Waits until nothing of these partitions is in memory any more, verdicts to be recorded included.
    async fn ended(&self, partitions: Partitions) {
        let mut look = Instant::now();
        while self.intake.registry.held_of(partitions) > 0 {
            look += ENDED_YET;
            sleep_until(look).await;
        }
    }
}

/// Whether events have come in lately.
#[derive(Debug, Default)]
struct Work {
    events: u64,
    at: Option<Instant>,
}

impl Work {
    fn is_recent(&mut self, intake: &Intake) -> bool {
        let events = intake.counters.snapshot().cold;
        if events != self.events || self.at.is_none() {
            (self.events, self.at) = (events, Some(Instant::now()));
        }
        self.at.is_some_and(|at| at.elapsed() < BUSY_FOR)
    }
}
