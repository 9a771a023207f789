use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Unit};
use pillarbox_core::event::Stamp;
use pillarbox_core::handle::Path;
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::ownership::{Fence, NodeId, NodeMode};
use pillarbox_core::store::{Backlog, NodeStatus, PartitionBacklog, Row};
use tokio::time::Instant;

use super::MetricsFactory;
use super::calls::Busy;
use super::latencies::Latencies;
use super::paused::PausedGauges;

/// A handler call shorter than this is quick: to measure each of them would cost a noticeable part of what is measured.
const QUICK_CALL: Duration = Duration::from_micros(50);
/// The label of a handler without a name, as most are.
const UNNAMED: &str = "";

/// The metrics of an outbox, besides those of [`Counters`](super::Counters).
///
/// Events are measured one by one, two readings of the clock and two records each, unless handlers are quick. Then it is one
/// event in sixteen, so that a stream of a million events per second keeps its speed; the distribution is the same, and the
/// counters tell the number of events.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) write: Exchange,
    pub(crate) claim: Exchange,
    pub(crate) settle: Exchange,
    pub(crate) renewals_failed: Counter,
    pub(crate) joins_failed: Counter,
    pub(crate) backlog_failed: Counter,
    pub(crate) backlog_age: Gauge,
    pub(crate) paused: PausedGauges,
    /// From the commit of an event, or from when it was read if it had a due time, to the end of its call.
    pub(crate) latencies: Latencies,
    stamp: Arc<Stamp>,
    hot_latency: Histogram,
    cold_latency: Histogram,
    /// By event type and the handler's name; those of handlers that are registered for one.
    handlers: HashMap<Box<str>, HashMap<Box<str>, Histogram>>,
    /// Of all other event types together, since a table may hold any number of them.
    other_handlers: Histogram,
    /// True if the handler measured last was quick.
    quick: AtomicBool,
    active: Gauge,
    hot_depth: Gauge,
    cold_depth: Gauge,
    in_memory: Gauge,
    busy_workers: Gauge,
    oldest_call: Gauge,
    /// Kept by the count of these threads itself, also while this process does not deliver.
    pub(crate) abandoned: Gauge,
    due: Gauge,
    delayed: Gauge,
    dead: Gauge,
    oldest: Gauge,
    live_nodes: Gauge,
    owned_partitions: Gauge,
    unowned_partitions: Gauge,
    partitions_pending: Gauge,
    partitions_most_pending: Gauge,
}

impl Meters {
    pub(crate) fn new<'a>(
        metrics_factory: &MetricsFactory<'_>,
        event_types: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
        stamp: Arc<Stamp>,
    ) -> Self {
        let latency = |path| {
            let help = "From the commit (hot) or from being read (cold) to the start of the handler.";
            metrics_factory.with("path", path).histogram("dispatch.latency", Unit::Seconds, help)
        };
        let handler = |event_type, name| {
            let help = "Duration of a handler call; a batch call counts once.";
            let labelled = metrics_factory.with("event_type", event_type).with("handler", name);
            labelled.histogram("handler.duration", Unit::Seconds, help)
        };
        let mut handlers: HashMap<Box<str>, HashMap<Box<str>, Histogram>> = HashMap::default();
        for (event_type, names) in event_types {
            let of_type = handlers.entry(event_type.into()).or_default();
            let names = if names.is_empty() { vec![UNNAMED] } else { names };
            of_type.extend(names.into_iter().map(|name| (name.into(), handler(event_type, name))));
        }
        let exchange = |(duration, time), (size, rows), (failed, failures)| Exchange {
            duration: metrics_factory.histogram(duration, Unit::Seconds, time),
            size: metrics_factory.histogram(size, Unit::Count, rows),
            failed: metrics_factory.counter(failed, failures),
        };
        let gauge = |name, help| metrics_factory.gauge(name, Unit::Count, help);
        let seconds = |name, help| metrics_factory.gauge(name, Unit::Seconds, help);
        let meters = Self {
            write: exchange(
                ("write.duration", "Duration of a batch insert."),
                ("write.rows", "Rows inserted by one call."),
                ("write.failed", "Inserts that failed."),
            ),
            claim: exchange(
                ("claim.duration", "Duration of a table read."),
                ("claim.rows", "Rows found by one reading of the table."),
                ("claim.failed", "Readings of the table that failed."),
            ),
            settle: exchange(
                ("settle.duration", "Duration of recording a batch of verdicts."),
                ("settle.batch", "Verdicts recorded in one transaction."),
                ("settle.failed", "Batches that could not be recorded at a try."),
            ),
            renewals_failed: metrics_factory.counter("lease.renewal.failed", "Renewals of the lease that failed."),
            joins_failed: metrics_factory.counter("join.failed", "Tries to join, or to become the owner, that failed."),
            backlog_failed: metrics_factory.counter("backlog.failed", "Failed readings of the rows and nodes gauges."),
            backlog_age: seconds("backlog.age", "The time since the rows and nodes gauges were last read."),
            paused: PausedGauges::new(metrics_factory),
            latencies: Latencies::default(),
            stamp,
            hot_latency: latency("hot"),
            cold_latency: latency("cold"),
            handlers,
            other_handlers: handler("other", UNNAMED),
            quick: AtomicBool::new(false),
            active: gauge("role.active", "1 while this process delivers, 0 while it may, NaN if it never does."),
            hot_depth: gauge("queue.hot.depth", "Events waiting in the hot queue."),
            cold_depth: gauge("queue.cold.depth", "Events waiting in the cold queue."),
            in_memory: gauge("in_memory", "Events in memory: queued, running or waiting to be recorded."),
            busy_workers: gauge("handler.busy", "Workers that are in a call of a handler."),
            oldest_call: seconds("handler.oldest", "Age of the oldest running handler call."),
            abandoned: gauge("handler.abandoned", "Blocking handlers that were abandoned while their threads go on."),
            due: gauge("rows.due", "Rows that are due: waiting for a node, or in the memory of one."),
            delayed: gauge("rows.delayed", "Rows whose time has not come."),
            dead: gauge("rows.dead", "Rows that were given up."),
            oldest: seconds("lag.oldest", "Time since the oldest due row became due."),
            live_nodes: gauge("nodes.live", "Nodes whose lease has not ended."),
            owned_partitions: gauge("partitions.owned", "Partitions that this node owns."),
            unowned_partitions: gauge("partitions.unowned", "Partitions that no node owns."),
            partitions_pending: gauge("partitions.pending", "Pending rows of all partitions."),
            partitions_most_pending: gauge(
                "partitions.pending.max",
                "Pending rows of the partition with most of them.",
            ),
        };
        meters.inactive();
        meters
    }

    /// Waits for the call of a handler, and measures it. `first` is the first of its rows, and `waited` each of its rows with its path and
    /// the time since which it has waited in memory.
    pub(crate) async fn handling<'a, T>(
        &self,
        first: &Row,
        waited: impl Iterator<Item = (&'a Row, Path, Instant)> + Clone,
        call: impl Future<Output = T>,
    ) -> T {
        if self.quick.load(Ordering::Relaxed) && !one_in_sixteen(first.seq) {
            return call.await;
        }
        let began = Instant::now();
        for (_, path, since) in waited.clone() {
            let latency = match path {
                Path::Hot => &self.hot_latency,
                Path::Cold => &self.cold_latency,
            };
            latency.record(began.duration_since(since));
        }
        let answer = call.await;
        let ended = Instant::now();
        let took = ended.duration_since(began);
        for (row, path, since) in waited {
            // Before it was read, an event without a due time has waited in the table.
            let is_from_table = path == Path::Cold && !row.timed;
            let latency =
                if is_from_table { self.stamp.now().since(row.created_at) } else { ended.duration_since(since) };
            self.latencies.record(latency);
        }
        self.quick.store(took < QUICK_CALL, Ordering::Relaxed);
        self.handler(first).record(took);
        answer
    }

    fn handler(&self, row: &Row) -> &Histogram {
        let of_type = self.handlers.get(row.event.event_type());
        of_type.and_then(|names| names.get(row.handler.as_deref().unwrap_or(UNNAMED))).unwrap_or(&self.other_handlers)
    }

    /// This process delivers.
    pub(crate) fn active(&self) {
        self.active.set(1);
    }

    /// This process only writes, or its outbox was stopped: that it does not deliver is no trouble.
    pub(crate) fn never_delivers(&self) {
        self.active.set(f64::NAN);
    }

    /// This process is to deliver, and does not yet.
    pub(crate) fn might_deliver(&self) {
        self.active.set(0);
    }

    /// This process does not deliver: its memory is empty, and of the table it knows nothing, which is not zero.
    pub(crate) fn inactive(&self) {
        self.active.set(0);
        self.backlog_age.set(f64::NAN);
        self.memory((0, 0), 0);
        self.calls(Busy::default());
        self.paused.inactive();
        let rows = [&self.due, &self.delayed, &self.dead, &self.oldest];
        let partitions = [&self.unowned_partitions, &self.partitions_pending, &self.partitions_most_pending];
        for unknown in rows.into_iter().chain(partitions).chain([&self.live_nodes, &self.owned_partitions]) {
            unknown.set(f64::NAN);
        }
    }

    /// Sets the gauges of the events in memory.
    pub(crate) fn memory(&self, (hot, cold): (usize, usize), in_memory: usize) {
        self.hot_depth.set(hot as f64);
        self.cold_depth.set(cold as f64);
        self.in_memory.set(in_memory as f64);
    }

    /// The calls that are running.
    pub(crate) fn calls(&self, busy: Busy) {
        self.busy_workers.set(busy.workers as f64);
        self.oldest_call.set(busy.oldest.unwrap_or_default());
    }

    /// Sets the gauges of the rows in the table.
    pub(crate) fn backlog(&self, backlog: &Backlog) {
        self.due.set(backlog.due as f64);
        self.delayed.set(backlog.delayed as f64);
        self.dead.set(backlog.dead as f64);
        self.oldest.set(backlog.oldest_due.unwrap_or_default());
    }

    /// Sets the gauges of the nodes, `own` among them.
    pub(crate) fn nodes(&self, nodes: &[NodeStatus], own: &NodeId, mode: NodeMode) {
        self.live_nodes.set(nodes.iter().filter(|node| node.lease_left.is_some()).count() as f64);
        if mode.fence() != Fence::Row {
            let owned = nodes.iter().find(|status| status.node == *own).map_or(0, |status| status.partitions);
            self.owned_partitions.set(f64::from(owned));
        }
    }

    /// Sets the gauges of the partitions.
    pub(crate) fn partitions(&self, partitions: &PartitionBacklog) {
        self.unowned_partitions.set(f64::from(partitions.unowned));
        self.partitions_pending.set(partitions.pending as f64);
        self.partitions_most_pending.set(partitions.most_pending as f64);
    }
}

/// The metrics of a repeated exchange of rows with the database.
#[derive(Debug)]
pub(crate) struct Exchange {
    duration: Histogram,
    size: Histogram,
    failed: Counter,
}

impl Exchange {
    /// Waits for a call to the database, and measures it; `size` says how many rows a successful one was about.
    pub(crate) async fn measure<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
        size: impl FnOnce(&T) -> usize,
    ) -> Result<T, E> {
        let began = Instant::now();
        let answer = call.await;
        self.record(began.elapsed(), answer.as_ref().ok().map(size));
        answer
    }

    /// Records a call: the time that it took, and the number of its rows if it succeeded.
    pub(crate) fn record(&self, took: Duration, rows: Option<usize>) {
        match rows {
            Some(rows) => {
                self.duration.record(took);
                self.size.record(rows as f64);
            }
            None => self.failed.increment(1),
        }
    }
}

/// Every sixteenth number or so, whatever the distance between those that are asked about: transactions that write events
/// in a fixed pattern must not leave some of them out for ever.
fn one_in_sixteen(seq: i64) -> bool {
    // Multiplied by 2^64 divided by the golden ratio, numbers in any arithmetic progression spread evenly.
    seq.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60 == 0
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;
    use pillarbox_core::clock::{SystemClock, SystemRandom};
    use pillarbox_core::event::Envelope;
    use pillarbox_core::store::StoreInfo;
    use pillarbox_core::write::{Dialect, NewRow};

    #[test]
    fn one_in_sixteen_is_sampled_of_every_pattern() {
        for distance in 1..=100_i64 {
            let sampled = (0..16_000).filter(|n| one_in_sixteen(n * distance + 7)).count();
            assert!((900..=1100).contains(&sampled), "{sampled} of 16000 at distance {distance}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_calls_are_measured_until_they_are_quick_and_again_once_they_are_not() {
        let recorder = DebuggingRecorder::new();
        let info = StoreInfo::new(Dialect::MEMORY, "here", "outbox_event");
        let stamp = Stamp::new(Arc::new(SystemClock), Arc::new(SystemRandom));
        let meters = metrics::with_local_recorder(&recorder, || {
            Meters::new(&MetricsFactory::new("test", &info), std::iter::empty(), Arc::new(stamp))
        });
        let calls = async |seqs: std::ops::Range<i64>, takes: Duration| {
            for seq in seqs {
                let row = Row::fresh(
                    &NewRow::new(Envelope::json("t", "1").expect("valid")),
                    seq,
                    pillarbox_core::clock::Timestamp::from_micros(0),
                );
                let waited = std::iter::once((&row, Path::Hot, Instant::now()));
                let call = async {
                    if !takes.is_zero() {
                        tokio::time::sleep(takes).await;
                    }
                };
                meters.handling(&row, waited, call).await;
            }
            let all = recorder.snapshotter().snapshot().into_vec().into_iter();
            all.filter(|(key, ..)| key.key().name() == "test.handler.duration")
                .map(|(.., value)| if let DebugValue::Histogram(all) = value { all.len() } else { 0 })
                .sum::<usize>()
        };
        let slow = Duration::from_millis(1);
        assert_eq!(calls(0..100, slow).await, 100);
        let quick = calls(100..1700, Duration::ZERO).await;
        assert!((90..=111).contains(&quick), "{quick} of 1600");
        let slow_again = calls(1700..1800, slow).await;
        assert!((60..100).contains(&slow_again), "{slow_again} of 100: noticed at the next sample");
    }
}
