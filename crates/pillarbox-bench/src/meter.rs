//! Observes a run: its progress ten times a second, and its costs at the end.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::time::{Instant, sleep};

use super::figures::{Costs, Sample, each};
use super::lab::{BenchDb, Gauge};
use super::process;
use crate::failure::Failure;
use pillarbox_program::report::rounded;

/// The progress of a run, as its own tasks count it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) written: u64,
    pub(crate) done: u64,
}

/// A meter of one run, from [`start`](Self::start) on.
pub(crate) struct Meter<'a> {
    lab: &'a dyn BenchDb,
    events: u32,
    bar: ProgressBar,
    started: Instant,
    gauge: Gauge,
    statements: Option<u64>,
    cpu_time: Option<Duration>,
    /// The CPU time of this process at the end of the run.
    cpu_time_after: Option<Duration>,
    series: Series,
}

/// The result of a meter.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) costs: Costs,
    pub(crate) samples: Vec<Sample>,
}

impl<'a> Meter<'a> {
    /// Begins a run of this many events. The `bar` shows those that are delivered.
    pub(crate) async fn start(lab: &'a dyn BenchDb, events: u32, bar: ProgressBar) -> Result<Self, Failure> {
        Ok(Self {
            lab,
            events,
            bar,
            gauge: lab.gauge().await?,
            statements: lab.statements().await?,
            series: Series::default(),
            cpu_time: process::cpu_time(),
            cpu_time_after: None,
            started: Instant::now(),
        })
    }

    /// Does the work of the run, and takes samples of its progress beside it.
    ///
    /// Both happen in one task: a meter in a task of its own would need access to the run, and a way to stop.
    pub(crate) async fn watch<T>(&mut self, progress: impl Fn() -> Progress, work: impl Future<Output = T>) -> T {
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            never = self.sample(&progress) => match never {},
        };
        self.cpu_time_after = process::cpu_time();
        let gauge = self.series.last_gauge();
        self.note(progress(), gauge);
        outcome
    }

    async fn sample(&mut self, progress: &impl Fn() -> Progress) -> Infallible {
        const GAUGE_EVERY: Duration = Duration::from_millis(500);
        let (mut gauge, mut asked) = (self.series.last_gauge(), None::<Instant>);
        loop {
            if asked.is_none_or(|asked| asked.elapsed() >= GAUGE_EVERY) {
                asked = Some(Instant::now());
                // If the database does not answer, the run itself will report that.
                gauge = self.lab.gauge().await.map_or(gauge, |now| self.since_start(now));
            }
            self.note(progress(), gauge);
            sleep(self.series.interval).await;
        }
    }

    fn note(&mut self, Progress { written, done }: Progress, Gauge { dead_tuples, wal_bytes }: Gauge) {
        self.bar.set_position(done);
        let seconds = rounded(self.started.elapsed().as_secs_f64(), 4);
        let backlog = written.saturating_sub(done);
        self.series.push(Sample { seconds, written, done, backlog, dead_tuples, wal_bytes });
    }

    fn since_start(&self, now: Gauge) -> Gauge {
        Gauge { wal_bytes: grown(self.gauge.wal_bytes, now.wal_bytes), ..now }
    }

    /// Ends the run. The outboxes must have stopped by now: their connections report their work when they close.
    pub(crate) async fn finish(self) -> Result<Measured, Failure> {
        let events = self.events.into();
        self.bar.finish_and_clear();
        let statements = grown(self.statements, self.lab.statements().await?);
        let gauge = self.since_start(self.lab.gauge().await?);
        let costs = Costs {
            wal_bytes_per_event: each(gauge.wal_bytes, events),
            statements_per_event: each(statements, events),
            dead_tuples: gauge.dead_tuples,
            ..Costs::of_cpu(self.cpu_time, self.cpu_time_after, events)
        };
        Ok(Measured { costs, samples: self.series.samples })
    }
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    // A server that was started anew counts from zero again.
    before.zip(after).and_then(|(before, after)| after.checked_sub(before))
}

/// At most [`MOST`](Self::MOST) samples: beyond that, every other one is dropped, and the interval doubles.
#[derive(Debug)]
struct Series {
    samples: Vec<Sample>,
    interval: Duration,
}

impl Default for Series {
    fn default() -> Self {
        Self { samples: Vec::new(), interval: Duration::from_millis(100) }
    }
}

impl Series {
    const MOST: usize = 1000;

    fn push(&mut self, sample: Sample) {
        if self.samples.len() >= Self::MOST {
            let mut kept = false;
            self.samples.retain(|_| {
                kept = !kept;
                kept
            });
            self.interval *= 2;
        }
        self.samples.push(sample);
    }

    fn last_gauge(&self) -> Gauge {
        self.samples.last().map_or_else(Gauge::default, |sample| Gauge {
            dead_tuples: sample.dead_tuples,
            wal_bytes: sample.wal_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(written: u64) -> Sample {
        Sample { seconds: 0.0, written, done: 0, backlog: written, dead_tuples: None, wal_bytes: None }
    }

    #[test]
    fn a_long_run_is_sampled_more_coarsely_and_from_its_beginning_to_its_end() {
        let mut series = Series::default();
        let shortest = series.interval;
        for number in 0..1_500 {
            series.push(sample(number));
        }
        assert_eq!(series.samples.len(), 1_000);
        assert_eq!(series.interval, shortest * 2);
        let numbers: Vec<_> = series.samples.iter().map(|sample| sample.written).collect();
        assert_eq!(
            (numbers[..3].to_vec(), numbers[499], numbers[500], numbers[999]),
            (vec![0, 2, 4], 998, 1_000, 1_499)
        );
    }

    #[test]
    fn counters_missing_before_or_after_have_no_cost() {
        let table =
            [(Some(10), Some(30), Some(20)), (None, Some(30), None), (Some(10), None, None), (Some(9), Some(1), None)];
        for (before, after, expected) in table {
            assert_eq!(grown(before, after), expected);
        }
        assert_eq!(each(Some(100), 8), Some(12.5));
        assert_eq!(each(Some(100), 0), None);
    }
}
