use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::ownership::{Epochs, Holding, NodeId, Partitions, Rebalanced, spread};
use pillarbox_core::planted_bug;
use pillarbox_core::store::{Store, highest_seq};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::work::Work;
use crate::backoff::{Backoff, jittered};
use crate::observe::Telemetry;
use crate::queue::{InFlight, KeyedQueue};

/// The time between two polls of the nodes and the free partitions: a node that leaves is replaced within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(900);
/// The same on a node that has had nothing to do for a while.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(1600);
/// The same if there is no other node: a node that joins waits for its share that long, and this one delivers meanwhile.
const ALONE_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The same right after partitions came or went, and then twice as long each time: nodes that start together find each other.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two checks that the running events of partitions to be given away have ended, at first.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The same after a while.
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which partitions that can be given wait for others that almost can, so that they go together.
const GATHER_TIMEOUT: Duration = Duration::from_millis(100);

/// Takes this node's share of the partitions, and gives away what is beyond it.
///
/// The section on partitions of `ownership/mod.rs` says when a partition is given, and what happens to running handlers.
#[derive(Debug)]
pub(crate) struct Rebalancer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) queue: Arc<KeyedQueue>,
    pub(crate) random: Arc<dyn Random>,
    /// The time that running handlers may take to end before they are told to stop.
    pub(crate) patience: Duration,
    /// Cancelled when this node turns out to have been evicted.
    pub(crate) lost: CancellationToken,
}

impl Rebalancer {
    /// Runs until this node turns out to have been evicted.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::default();
        let mut work = Work::default();
        let mut surplus = Surplus::default();
        let mut give = Epochs::none();
        let mut soon = MIN_POLL_INTERVAL;
        loop {
            let health = &self.telemetry.loops.rebalance;
            match health.ask(self.store.rebalance(&self.node, &give)).await {
                Ok(Rebalanced::Member(holding)) => {
                    if backoff.end() {
                        tracing::info!("partitions can be rebalanced again");
                    }
                    let (before, _) = self.queue.assignment();
                    surplus.set(self.deliver_share(&holding).await, Instant::now());
                    let (after, _) = self.queue.assignment();
                    soon = if before == after { (soon * 2).min(ALONE_POLL_INTERVAL) } else { MIN_POLL_INTERVAL };
                    let every = match (work.note_events(self.telemetry.counters.snapshot().cold), holding.next_expiry) {
                        (true, _) => POLL_INTERVAL,
                        (false, Some(_)) => IDLE_POLL_INTERVAL,
                        (false, None) => ALONE_POLL_INTERVAL,
                    };
                    let interval = jittered(every.min(soon), &*self.random);
                    let interval =
                        holding.next_expiry.map_or(interval, |expiry| interval.min(expiry + MIN_CHECK_INTERVAL));
                    let latest = Instant::now() + interval;
                    give = holding.epochs.of(health.until(latest, self.given_by(latest, &mut surplus)).await);
                }
                Ok(Rebalanced::Lost) => return self.lost.cancel(),
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "partitions cannot be rebalanced; trying again");
                    }
                    health.sleep(backoff.next(&*self.random)).await;
                }
            }
        }
    }

    /// Delivers this node's share and nothing else; returns the other partitions that it owns.
    async fn deliver_share(&self, holding: &Holding) -> Partitions {
        let surplus = spread::surplus(holding.owned, holding.target.clone());
        let active = holding.owned.difference(surplus);
        let (_, before) = self.queue.assignment();
        if !holding.unclean.is_empty() {
            self.queue.suspect(holding.unclean, highest_seq(&*self.store).await);
        }
        let dropped = self.queue.assign(active);
        self.in_flight.remove(dropped);
        if active != before {
            tracing::info!(node = %self.node, partitions = active.len(), owned = ?active, "this node's share of the partitions");
        }
        surplus
    }

    /// Waits until part of the surplus can be given, `latest` at the latest; returns that part. Handlers that run for too long
    /// are told to stop.
    async fn given_by(&self, latest: Instant, surplus: &mut Surplus) -> Partitions {
        let gathered = Instant::now() + GATHER_TIMEOUT;
        let (mut next_check, mut pause) = (Instant::now(), MIN_CHECK_INTERVAL);
        loop {
            let now = Instant::now();
            self.request_stop(surplus.overdue(now, self.patience));
            let busy = if surplus.is_empty() || planted_bug::is_active("partition_given_while_its_handler_runs") {
                Partitions::NONE
            } else {
                self.in_flight.busy_partitions()
            };
            let idle = surplus.partitions().difference(busy);
            let all = idle == surplus.partitions();
            if now >= latest || !idle.is_empty() && (all || now >= gathered) {
                return idle;
            }
            if !surplus.is_empty() {
                next_check = (next_check + pause).min(latest);
                pause = (pause * 2).min(MAX_CHECK_INTERVAL);
            } else {
                next_check = latest;
            }
            sleep_until(next_check).await;
        }
    }

    /// Tells the handlers of these partitions to stop.
    fn request_stop(&self, partitions: Partitions) {
        if !partitions.is_empty() && self.queue.request_stop(partitions) > 0 {
            tracing::warn!(
                node = %self.node,
                ?partitions,
                "handlers run for longer than the drain timeout while another node waits for their partitions; they are told \
                 to stop, and each partition is given when its handlers have ended"
            );
        }
    }
}

/// The partitions that are to be given away.
#[derive(Debug, Default)]
struct Surplus {
    /// Each with the time since when it is surplus, and true if its handlers were told to stop.
    since: BTreeMap<u8, (Instant, bool)>,
}

impl Surplus {
    fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    fn partitions(&self) -> Partitions {
        self.since.keys().copied().collect()
    }

    /// Makes these the ones that are to be given away.
    fn set(&mut self, partitions: Partitions, now: Instant) {
        self.since.retain(|partition, _| partitions.contains(*partition));
        for partition in partitions.iter() {
            self.since.entry(partition).or_insert((now, false));
        }
    }

    /// The partitions whose handlers are to be told to stop now. Each is returned once.
    fn overdue(&mut self, now: Instant, patience: Duration) -> Partitions {
        let overdue =
            self.since.iter_mut().filter(|(_, (since, stop_requested))| !stop_requested && now >= *since + patience);
        let request_stop = |(partition, (_, stop_requested)): (&u8, &mut (Instant, bool))| {
            *stop_requested = true;
            *partition
        };
        overdue.map(request_stop).collect()
    }
}
