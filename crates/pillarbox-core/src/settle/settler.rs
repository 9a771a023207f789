use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Change, Verdict};
use crate::clock::Random;
use crate::error::{StoreError, StoreErrorKind};
use crate::observe::Counters;
use crate::ownership::NodeId;
use crate::queue::Intake;
use crate::retry::Pause;
use crate::store::Store;

/// Records verdicts in batches that form by themselves: while one is being written the next accumulates, so that no timer
/// delays a lone event and a stream of them shares its transactions.
///
/// Recording is not handling. While the database fails, verdicts are recorded again and again until the lease is lost;
/// they are never turned into failures of the handler.
#[derive(Debug)]
pub(crate) struct Settler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) node: NodeId,
    pub(crate) batch: usize,
    pub(crate) verdicts: mpsc::Receiver<Verdict>,
    /// Cancelled when repeating is pointless: the lease is lost, or the time for shutting down is up.
    pub(crate) give_up: CancellationToken,
}

impl Settler {
    /// Runs until every sender of verdicts is gone and the last batch is recorded.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(self.batch);
        while self.verdicts.recv_many(&mut batch, self.batch).await > 0 {
            self.settle(&batch).await;
            batch.clear();
        }
    }

    async fn settle(&self, batch: &[Verdict]) {
        let mut pause = Pause::default();
        loop {
            match self.store.settle(&self.node, batch).await {
                Ok(refused) => {
                    // After a failure the first try may have been recorded all the same, and then repeating it changes
                    // nothing: what looks refused is not known to be.
                    let first = !pause.is_over();
                    self.settled(batch, &refused, first);
                    return;
                }
                Err(error)
                    if !error.is_temporary() && error.kind() == StoreErrorKind::Unexpected && pause.is_first() =>
                {
                    if batch.len() > 1 {
                        // One verdict that the database refuses must not keep the others from being recorded.
                        let (left, right) = batch.split_at(batch.len() / 2);
                        Box::pin(self.settle(left)).await;
                        Box::pin(self.settle(right)).await;
                        return;
                    }
                    self.unrecordable(batch, &error);
                    return;
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, events = batch.len(), "verdicts cannot be recorded; trying again");
                    }
                    let wait = tokio::time::sleep(pause.next(&*self.random));
                    if self.give_up.run_until_cancelled(wait).await.is_none() {
                        tracing::warn!(events = batch.len(), "verdicts were given up; the events are delivered again");
                        Counters::add(&self.intake.counters.refused, batch.len() as u64);
                        return;
                    }
                }
            }
        }
    }

    fn settled(&self, batch: &[Verdict], refused: &[i64], first: bool) {
        let refused: HashSet<i64> = refused.iter().copied().collect();
        if !refused.is_empty() && first {
            tracing::warn!(events = refused.len(), node = %self.node, "verdicts were refused: this node no longer owns the rows, or they changed");
            Counters::add(&self.intake.counters.refused, refused.len() as u64);
        }
        let mut totals = [0_u64; 4];
        let mut soonest = None;
        let mut dead_example = None;
        for verdict in batch.iter().filter(|verdict| !refused.contains(&verdict.seq)) {
            let kind = match &verdict.change {
                Change::Done => 0,
                Change::Retry { attempts, delay, .. } => {
                    soonest = Some(soonest.map_or(*delay, |other| (*delay).min(other)));
                    if *attempts > verdict.expected_attempts { 1 } else { 2 }
                }
                Change::Dead { error, .. } => {
                    dead_example = Some((verdict.seq, error));
                    3
                }
            };
            totals[kind] += 1;
        }
        // One line a batch, so that a broken release cannot fill the disk.
        if let Some((seq, error)) = dead_example {
            tracing::error!(
                events = totals[3],
                seq,
                error,
                "events are DEAD and wait for a replay or a discard; one of them is shown"
            );
        }
        let counters = &self.intake.counters;
        let [done, retried, deferred, dead] = totals;
        Counters::add(&counters.done, done);
        Counters::add(&counters.retried, retried);
        Counters::add(&counters.deferred, deferred);
        Counters::add(&counters.dead, dead);
        self.intake.registry.release(batch.iter().map(|verdict| verdict.seq));
        if let Some(delay) = soonest {
            self.intake.lookout.due_in(delay);
        }
    }

    /// The row stays pending, so it is delivered again: at least once, and visible in the log and the counters.
    fn unrecordable(&self, batch: &[Verdict], error: &StoreError) {
        let seq = batch.first().map(|verdict| verdict.seq);
        tracing::error!(seq, %error, "the database refuses this verdict; the event is delivered again");
        Counters::add(&self.intake.counters.refused, batch.len() as u64);
        self.intake.registry.release(batch.iter().map(|verdict| verdict.seq));
    }
}
