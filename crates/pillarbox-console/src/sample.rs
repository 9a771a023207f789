//! Figures of the last hour, in the memory of this process.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use pillarbox_core::clock::{Clock as _, SystemClock, Timestamp};
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{Backlog, NodeStatus, Store};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use crate::app::Sources;
use crate::source::Source;

/// The time between two samples of a source.
const EVERY: Duration = Duration::from_secs(5);
/// Samples that are kept of a source: an hour.
const KEPT: usize = 720;
/// The time that a source may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The share of its time that a source may spend on answering, as a divisor: a table with millions of pending rows is counted less
/// often.
const SHARE: u32 = 20;

/// The figures of a source at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) at: Timestamp,
    /// The figures; the problem if the database did not answer.
    pub(crate) figures: Result<Figures, String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) backlog: Backlog,
    pub(crate) nodes: Vec<NodeStatus>,
    pub(crate) totals: Option<Totals>,
}

/// What was done since some moment: of all nodes that tell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
}

/// The samples of all sources.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<HashMap<String, Ring>>);

#[derive(Debug, Default)]
struct Ring {
    samples: VecDeque<Sample>,
    /// Not asked before.
    next: Option<Instant>,
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
    due: Vec<Option<u64>>,
    dead: Vec<Option<u64>>,
}

impl Samples {
    /// Samples all sources for ever.
    pub(crate) async fn keep(&self, sources: Sources) {
        loop {
            let now = sources();
            self.0.lock().retain(|name, _| now.iter().any(|source| source.name() == name));
            for source in now {
                let is_due = self
                    .0
                    .lock()
                    .get(source.name())
                    .and_then(|ring| ring.next)
                    .is_none_or(|next| next <= Instant::now());
                if is_due {
                    self.take(&source).await;
                }
            }
            sleep(EVERY / 5).await;
        }
    }

    /// Takes a sample.
    pub(crate) async fn take(&self, source: &Source) {
        let began = Instant::now();
        let figures = match source.store() {
            Err(problem) => Err(problem.to_owned()),
            Ok(store) => match timeout(PATIENCE, figures(store, source)).await {
                Ok(figures) => figures,
                Err(_elapsed) => Err("the database did not answer within five seconds".to_owned()),
            },
        };
        let mut all = self.0.lock();
        let ring = all.entry(source.name().to_owned()).or_default();
        ring.next = Some(began + EVERY.max(began.elapsed() * SHARE));
        if ring.samples.len() >= KEPT {
            ring.samples.pop_front();
        }
        ring.samples.push_back(Sample { at: SystemClock.now(), figures });
    }

    /// The last sample of a source.
    pub(crate) fn last(&self, source: &str) -> Option<Sample> {
        self.0.lock().get(source)?.samples.back().cloned()
    }

    /// The events delivered, and the attempts failed, a second: over the last minute.
    pub(crate) fn rates(&self, source: &str) -> Option<(f64, f64)> {
        let all = self.0.lock();
        let samples = &all.get(source)?.samples;
        let last = samples.back()?;
        let first =
            samples.iter().rev().take_while(|sample| last.at.since(sample.at) <= Duration::from_secs(60)).last()?;
        per_second(first, last)
    }

    pub(crate) fn series(&self, source: &str) -> Series {
        let all = self.0.lock();
        let mut series = Series::default();
        let Some(ring) = all.get(source) else { return series };
        let mut before: Option<&Sample> = None;
        for sample in &ring.samples {
            let figures = sample.figures.as_ref().ok();
            let rates = before.and_then(|before| per_second(before, sample));
            series.at.push(sample.at.as_micros() / 1_000_000);
            series.rate.push(rates.map(|(rate, _)| rate));
            series.failures.push(rates.map(|(_, failures)| failures));
            let lag = |backlog: &Backlog| backlog.oldest_due.unwrap_or_default().as_secs_f64();
            series.lag.push(figures.map(|figures| lag(&figures.backlog)));
            series.due.push(figures.map(|figures| figures.backlog.due));
            series.dead.push(figures.map(|figures| figures.backlog.dead));
            before = Some(sample);
        }
        series
    }
}

/// Events delivered, and attempts failed, a second between two samples; `None` if they do not tell, or a node has begun anew.
fn per_second(before: &Sample, after: &Sample) -> Option<(f64, f64)> {
    let totals = |sample: &Sample| sample.figures.as_ref().ok()?.totals;
    let (first, last) = (totals(before)?, totals(after)?);
    let seconds = after.at.since(before.at).as_secs_f64();
    let rate = |first: u64, last: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        last.checked_sub(first).filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
    };
    rate(first.delivered, last.delivered).zip(rate(first.failed, last.failed))
}

async fn figures(store: &dyn Store, source: &Source) -> Result<Figures, String> {
    let backlog = store.backlog().await.map_err(|error| error.to_string())?;
    let nodes = store.nodes().await.map_err(|error| error.to_string())?;
    let totals = source.outbox().map(|outbox| {
        let stats = outbox.stats();
        Totals { delivered: stats.done, failed: stats.retried + stats.dead }
    });
    Ok(Figures { backlog, nodes, totals })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pillarbox_memory::MemoryStore;

    use super::*;

    fn sample(seconds: i64, delivered: u64) -> Sample {
        let totals = Some(Totals { delivered, failed: 0 });
        let figures = Figures { backlog: Backlog::default(), nodes: Vec::new(), totals };
        Sample { at: Timestamp::from_micros(seconds * 1_000_000), figures: Ok(figures) }
    }

    #[test]
    fn a_rate_is_the_difference_over_time() {
        assert_eq!(per_second(&sample(10, 100), &sample(15, 150)), Some((10.0, 0.0)));
        assert_eq!(per_second(&sample(10, 100), &sample(15, 50)), None, "a node has begun anew");
        assert_eq!(per_second(&sample(10, 100), &sample(10, 100)), None, "no time has passed");
    }

    #[tokio::test]
    async fn samples_are_bounded() {
        let (samples, source) = (Samples::default(), Source::of_store("shop", Arc::new(MemoryStore::new())));
        for _ in 0..=KEPT {
            samples.take(&source).await;
        }
        assert_eq!(samples.series("shop").at.len(), KEPT);
        assert!(samples.last("shop").is_some_and(|sample| sample.figures.is_ok()) && samples.last("other").is_none());
    }

    #[tokio::test]
    async fn a_source_that_is_away_says_why() {
        let (samples, source) = (Samples::default(), Source::away("shop", "no route to the host"));
        samples.take(&source).await;
        let last = samples.last("shop").expect("a sample");
        assert_eq!(last.figures.map(|_| ()), Err("no route to the host".to_owned()));
    }
}
