//! Figures of the last hour, in the memory of this process.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::stream::{StreamExt as _, iter};
use pillarbox_core::clock::{Clock as _, SystemClock, Timestamp};
use pillarbox_core::error::StoreError;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{Backlog, NodeStatus, Store};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use crate::app::Sources;
use crate::source::Source;

/// The time between two samples of a source.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// The points of the plots that are kept of a source: an hour.
const PLOT_POINTS: usize = 720;
/// Samples that are kept whole: those of the [window of rates](RATE_WINDOW).
const KEPT_SAMPLES: usize = 13;
/// The most sources that are sampled at the same time.
const MAX_CONCURRENT_SAMPLES: usize = 8;
/// The time that a source may take to answer.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The share of its time that a source may spend on answering, as a divisor: a table with millions of pending rows is counted less
/// often.
const BUSY_DIVISOR: u32 = 20;

/// The most pauses that a sample names.
const MAX_NAMED_PAUSES: usize = 5;

/// The time over which the current rates are computed: a minute.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// The time over which each point of a plot is computed: nodes write their figures with each renewal of their lease, which takes several seconds.
const PLOT_WINDOW: Duration = Duration::from_secs(30);

/// The time from the beginning of a sample that took so long to that of the next, after so many failures in a row. A sample without an answer
/// may have met a lock that is gone now, so the next one follows soon, and then less and less often.
fn pause(took: Duration, failed: u32) -> Duration {
    let rare = SAMPLE_INTERVAL.max(took * BUSY_DIVISOR);
    if failed == 0 { rare } else { rare.min(SAMPLE_INTERVAL * 2_u32.saturating_pow(failed)) }
}

/// The figures of a source at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) at: Timestamp,
    pub(crate) figures: Result<Figures, NoFigures>,
}

/// The reason why there are no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoFigures {
    /// The source cannot be used: the problem.
    Away(String),
    /// Counting has not ended in time, which says nothing about the source: its table may be large, or somebody keeps it locked.
    NotInTime,
}

#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) backlog: Backlog,
    pub(crate) nodes: Vec<NodeStatus>,
    pub(crate) paused: Paused,
}

/// The pauses of operators. Samples are many, so that they keep a few names alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paused {
    /// Some, such as `type order.placed`.
    pub(crate) names: Vec<String>,
    /// The number of the others.
    pub(crate) more: usize,
}

/// The work of all nodes between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    /// Events delivered a second.
    pub(crate) delivered: f64,
    /// Attempts that failed, a second.
    pub(crate) failed: f64,
}

/// The samples of all sources.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<HashMap<String, Ring>>);

#[derive(Debug, Default)]
struct Ring {
    /// The last ones, for the rates.
    samples: VecDeque<Sample>,
    points: VecDeque<Point>,
    /// Not asked before.
    next: Option<Instant>,
    /// Samples without an answer since the last one that had one.
    failed: u32,
}

/// The part of a sample that the plots show.
#[derive(Debug)]
struct Point {
    at: Timestamp,
    rates: Option<Rates>,
    latency: [Option<Duration>; 2],
    backlog: Option<Backlog>,
}

/// The columns of the plots. `None` where a figure is not known.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Series {
    /// Seconds since 1970.
    at: Vec<i64>,
    /// Events delivered a second.
    rate: Vec<Option<f64>>,
    /// Attempts that failed, a second.
    failures: Vec<Option<f64>>,
    /// Seconds that the oldest due event waits.
    lag: Vec<Option<f64>>,
    /// Seconds from commit to delivery, the median of the slowest node.
    p50: Vec<Option<f64>>,
    /// The same, the 99th percentile.
    p99: Vec<Option<f64>>,
    due: Vec<Option<u64>>,
    dead: Vec<Option<u64>>,
}

impl Samples {
    /// Samples all sources for ever.
    pub(crate) async fn keep(&self, sources: Sources) {
        loop {
            let now = sources();
            self.0.lock().retain(|name, _| now.iter().any(|source| source.name() == name));
            // One that does not answer keeps none of the others waiting.
            let due = now.iter().filter(|source| self.is_due(source.name()));
            iter(due).for_each_concurrent(MAX_CONCURRENT_SAMPLES, |source| self.take(source)).await;
            sleep(SAMPLE_INTERVAL / 5).await;
        }
    }

    fn is_due(&self, source: &str) -> bool {
        self.0.lock().get(source).and_then(|ring| ring.next).is_none_or(|next| next <= Instant::now())
    }

    /// Takes a sample.
    pub(crate) async fn take(&self, source: &Source) {
        let began = Instant::now();
        let figures = match source.store() {
            Err(problem) => Err(NoFigures::Away(problem.to_owned())),
            Ok(store) => match timeout(SAMPLE_TIMEOUT, figures(store)).await {
                Ok(figures) => figures.map_err(|error| NoFigures::Away(error.to_string())),
                Err(_elapsed) => Err(NoFigures::NotInTime),
            },
        };
        let mut all = self.0.lock();
        let ring = all.entry(source.name().to_owned()).or_default();
        ring.failed = if figures.is_ok() { 0 } else { ring.failed.saturating_add(1) };
        ring.next = Some(began + pause(began.elapsed(), ring.failed));
        ring.push(Sample { at: SystemClock.now(), figures });
    }

    /// The last sample of a source.
    pub(crate) fn last(&self, source: &str) -> Option<Sample> {
        self.0.lock().get(source)?.samples.back().cloned()
    }

    /// The rates over the last minute; `None` if no node reports its figures.
    pub(crate) fn rates(&self, source: &str) -> Option<Rates> {
        let all = self.0.lock();
        rates(&all.get(source)?.samples, RATE_WINDOW)
    }

    pub(crate) fn series(&self, source: &str) -> Series {
        let all = self.0.lock();
        let mut series = Series::default();
        let Some(ring) = all.get(source) else { return series };
        for Point { at, rates, latency: [p50, p99], backlog } in &ring.points {
            let backlog = backlog.as_ref();
            series.at.push(at.as_micros() / 1_000_000);
            series.rate.push(rates.map(|rates| rates.delivered));
            series.failures.push(rates.map(|rates| rates.failed));
            series.lag.push(backlog.map(|backlog| backlog.oldest_due.unwrap_or_default().as_secs_f64()));
            series.p50.push(p50.map(|time| time.as_secs_f64()));
            series.p99.push(p99.map(|time| time.as_secs_f64()));
            series.due.push(backlog.map(|backlog| backlog.due));
            series.dead.push(backlog.map(|backlog| backlog.dead));
        }
        series
    }
}

impl Ring {
    /// Adds a sample, and computes its point of the plots, so that showing them later is cheap.
    fn push(&mut self, sample: Sample) {
        push_bounded(&mut self.samples, sample.clone(), KEPT_SAMPLES);
        let figures = sample.figures.ok();
        let point = Point {
            at: sample.at,
            rates: rates(&self.samples, PLOT_WINDOW),
            latency: figures.as_ref().map(Figures::latency).unwrap_or_default(),
            backlog: figures.map(|figures| figures.backlog),
        };
        push_bounded(&mut self.points, point, PLOT_POINTS);
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl Figures {
    /// The median and the 99th percentile of the slowest node that delivers.
    pub(crate) fn latency(&self) -> [Option<Duration>; 2] {
        let alive = || self.nodes.iter().filter(|node| node.lease_left.is_some()).filter_map(|node| node.figures);
        [
            alive().filter_map(|figures| figures.latency_p50).max(),
            alive().filter_map(|figures| figures.latency_p99).max(),
        ]
    }
}

/// The rates between the last sample and the first one at most `span` before it that knows the same nodes: one from before a node has
/// started tells nothing of it.
fn rates(samples: &VecDeque<Sample>, span: Duration) -> Option<Rates> {
    let mut latest_first = samples.iter().rev();
    let until = latest_first.next()?;
    let earlier = latest_first.take_while(|sample| until.at.since(sample.at) <= span);
    earlier.filter_map(|sample| per_second(sample, until)).last()
}

/// The work of the nodes of both samples between them. A node that has joined since is left out: its earlier work is not known.
fn per_second(before: &Sample, after: &Sample) -> Option<Rates> {
    let seconds = after.at.since(before.at).as_secs_f64();
    let (first, last) = (before.figures.as_ref().ok()?, after.figures.as_ref().ok()?);
    let earlier: HashMap<_, _> = first.nodes.iter().map(|node| (&node.node, node.figures)).collect();
    let (mut delivered, mut failed, mut is_told) = (0, 0, false);
    for node in &last.nodes {
        let earlier = earlier.get(&node.node).copied().flatten();
        if let Some((earlier, later)) = earlier.zip(node.figures) {
            delivered += later.delivered.saturating_sub(earlier.delivered);
            failed += later.failed.saturating_sub(earlier.failed);
            is_told = true;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = |count: u64| count as f64 / seconds;
    (is_told && seconds > 0.0).then(|| Rates { delivered: rate(delivered), failed: rate(failed) })
}

async fn figures(store: &dyn Store) -> Result<Figures, StoreError> {
    let backlog = store.backlog().await?;
    let nodes = store.nodes().await?;
    // Its page says why if it cannot be read.
    let pauses = store.pauses().await.unwrap_or_default();
    let names = pauses.iter().take(MAX_NAMED_PAUSES).map(|pause| format!("{} {}", pause.kind, pause.name)).collect();
    Ok(Figures { backlog, nodes, paused: Paused { names, more: pauses.len().saturating_sub(MAX_NAMED_PAUSES) } })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pillarbox_core::ownership::NodeId;
    use pillarbox_core::store::NodeFigures;
    use pillarbox_memory::MemoryStore;

    use super::*;

    #[test]
    fn a_sample_without_an_answer_is_soon_taken_again() {
        let seconds = Duration::from_secs;
        let table = [
            (seconds(0), 0, 5),
            (seconds(1), 0, 20),
            (SAMPLE_TIMEOUT, 1, 10),
            (SAMPLE_TIMEOUT, 2, 20),
            (SAMPLE_TIMEOUT, 9, 100),
        ];
        for (took, failed, expected) in table {
            assert_eq!(pause(took, failed), seconds(expected), "{took:?}, {failed}");
        }
    }

    fn sample(seconds: i64, nodes: &[(&str, u64)]) -> Sample {
        let node = |(name, delivered): &(&str, u64)| NodeStatus {
            node: NodeId::from_stored(name),
            mode: "multi_node".to_owned(),
            started_at: Timestamp::from_micros(0),
            lease_left: Some(Duration::from_secs(10)),
            expires_at: Timestamp::from_micros(0),
            lease: None,
            partitions: 0,
            figures: Some(NodeFigures { delivered: *delivered, failed: 1, ..NodeFigures::default() }),
        };
        let nodes = nodes.iter().map(node).collect();
        let figures = Figures { backlog: Backlog::default(), nodes, paused: Paused::default() };
        Sample { at: Timestamp::from_micros(seconds * 1_000_000), figures: Ok(figures) }
    }

    #[test]
    fn a_rate_is_that_of_the_nodes_of_both_samples() {
        let delivered = |first: &Sample, last: &Sample| per_second(first, last).map(|rates| rates.delivered);
        let first = sample(10, &[("a", 100), ("b", 7)]);
        assert_eq!(delivered(&first, &sample(15, &[("a", 150), ("b", 7)])), Some(10.0));
        assert_eq!(delivered(&first, &sample(15, &[("a", 150), ("c", 900)])), Some(10.0), "one has joined");
        assert_eq!(delivered(&first, &sample(15, &[("c", 900)])), None, "nobody tells");
        assert_eq!(delivered(&first, &sample(10, &[("a", 150)])), None, "no time has passed");
    }

    #[test]
    fn a_rate_is_told_over_its_span() {
        let samples: VecDeque<Sample> =
            (0..20).map(|step| sample(step * 5, &[("a", if step < 18 { 0 } else { 60 })])).collect();
        assert_eq!(rates(&samples, RATE_WINDOW).map(|rates| rates.delivered), Some(1.0));
        assert_eq!(rates(&samples, PLOT_WINDOW).map(|rates| rates.delivered), Some(2.0));
        assert_eq!(rates(&samples.into_iter().take(1).collect(), PLOT_WINDOW), None);
    }

    #[test]
    fn a_node_that_has_just_started_is_told_of_from_its_second_sample_on() {
        let of = |nodes: &[(&str, u64)], step: i64| sample(step * 5, nodes);
        let mut ring = Ring::default();
        for (step, nodes) in [&[][..], &[], &[("a", 10)], &[("a", 60)]].into_iter().enumerate() {
            ring.push(of(nodes, i64::try_from(step).expect("small")));
        }
        let shown: Vec<_> = ring.points.iter().map(|point| point.rates.map(|rates| rates.delivered)).collect();
        assert_eq!(shown, [None, None, None, Some(10.0)]);
    }

    #[tokio::test]
    async fn samples_are_bounded() {
        let (samples, source) = (Samples::default(), Source::of_store("shop", Arc::new(MemoryStore::new())));
        for _ in 0..=PLOT_POINTS {
            samples.take(&source).await;
        }
        assert_eq!(samples.series("shop").at.len(), PLOT_POINTS);
        assert_eq!(samples.0.lock()["shop"].samples.len(), KEPT_SAMPLES);
        assert!(samples.last("shop").is_some_and(|sample| sample.figures.is_ok()) && samples.last("other").is_none());
    }

    #[tokio::test]
    async fn a_source_that_is_away_says_why() {
        let (samples, source) = (Samples::default(), Source::away("shop", "no route to the host"));
        samples.take(&source).await;
        let last = samples.last("shop").expect("a sample");
        assert_eq!(last.figures.map(|_| ()), Err(NoFigures::Away("no route to the host".to_owned())));
    }
}
