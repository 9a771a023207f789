use std::fs::File;
use std::io::Write as _;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::beside::{Beside, Outcome, Path, SECONDS};
use crate::args::SteadyArgs;
use crate::failure::Failure;
use crate::figures::{Bound, Figures, OwnFigures, Sample, Verdict, share};
use crate::lab::BenchDb;
use crate::load::Load;
use crate::report::plot::{self, Frame, Line};
use pillarbox_program::report::{self, per_second, rounded};
use pillarbox_program::stopwatch::Latency;

/// Writers at a steady rate, each transaction one event, while the events are delivered: does the outbox keep up with them? And
/// with `beside_snapshot`, that many events more, does it keep up as well while a snapshot is held open?
pub(crate) async fn run(
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    args: &SteadyArgs,
    beside_snapshot: Option<u32>,
) -> Result<Figures, Failure> {
    let rate = args.pace.rate;
    let plot = args.plot.as_deref().map(Plot::create).transpose()?;
    let without = deliver(lab, load, args, false).await?;
    let Some(events) = beside_snapshot else {
        let verdicts = verdicts(&without, load, rate);
        let own = own_figures(&without, load, args)?;
        return Ok(figures(lab, load, without, own, verdicts));
    };
    let without_per_s = per_second(load.events.into(), without.writing.as_secs_f64());
    let (without, fate) = (without.calls.stopwatch.latency(), without.fate);

    let load = load.of_events(events);
    let mut held = deliver(lab, &load, args, true).await?;
    held.fate = held.fate.and(fate);
    let over_time = held.calls.stopwatch.over_time(PARTS);
    if let Some(plot) = plot {
        plot.draw(without, &over_time)?;
    }
    let (latency, per_s) = (held.calls.stopwatch.latency(), per_second(events.into(), held.writing.as_secs_f64()));
    let mut verdicts = verdicts(&held, &load, rate);
    verdicts.extend([late_by_the_snapshot(without, latency), slow_by_the_snapshot(without_per_s, per_s)]);
    let mut own = own_figures(&held, &load, args)?;
    own.flag("snapshot_held", true, "snapshot held", "by an idle transaction, during all of this")?;
    own.rate("written_without_per_s", without_per_s, "written before", "in the run before, without a snapshot held")?;
    own.latency("without_snapshot_us", without, "the same before")?;
    let over_time: Vec<_> = over_time.into_iter().map(|(seconds, latency)| Part { seconds, latency }).collect();
    own.add("latency_over_time_us", &over_time, [])?;
    Ok(figures(lab, &load, held, own, verdicts))
}

/// The latencies of one part of a run. As JSON its keys are a contract.
#[derive(Debug, Serialize)]
struct Part {
    /// Seconds from the first commit to the end of the part.
    seconds: f64,
    #[serde(flatten)]
    latency: Latency,
}

/// The parts of a run whose latencies are told apart: a minute each in an hour.
const PARTS: u32 = 60;

async fn deliver(
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    args: &SteadyArgs,
    snapshot_held: bool,
) -> Result<Outcome, Failure> {
    let path = if args.cold { Path::Elsewhere { woken: false } } else { Path::Memory };
    let beside = Beside {
        lab,
        load,
        writers: args.writers.writers,
        rate: Some(args.pace.rate),
        nodes: args.nodes,
        settings: args.mode.into(),
        path,
        waited_for: false,
        snapshot_held,
    };
    beside.run().await
}

fn verdicts(ran: &Outcome, load: &Load, rate: u32) -> Vec<Verdict> {
    let written_per_s = per_second(load.events.into(), ran.writing.as_secs_f64());
    vec![
        rate_was_met(written_per_s, rate),
        backlog_did_not_grow(&ran.measured.samples, ran.writing, rate),
        all_were_handled(ran.rows.done, load.events),
    ]
}

fn own_figures(ran: &Outcome, load: &Load, args: &SteadyArgs) -> Result<OwnFigures, Failure> {
    let told =
        if args.cold { "from the table, which nobody tells them of" } else { "told of each commit by the guard" };
    let mut own = OwnFigures::new(SECONDS);
    own.mode(args.mode)?;
    own.count("nodes", args.nodes, "nodes", told)?;
    own.writers(args.writers.writers)?;
    let rate = args.pace.rate;
    own.add("rate", &rate, [("rate", report::rate(rate.into()), "to be written by all of them")])?;
    own.add("cold", &args.cold, [])?;
    own.written(per_second(load.events.into(), ran.writing.as_secs_f64()))?;
    own.within_a_second(share(ran.rows.done_within_1s, load.events.into()))?;
    own.latency("commit_to_handler_us", ran.calls.stopwatch.latency(), "commit to handler")?;
    Ok(own)
}

fn figures(lab: &Arc<dyn BenchDb>, load: &Load, ran: Outcome, own: OwnFigures, verdicts: Vec<Verdict>) -> Figures {
    let mut figures = Figures::new("steady", &**lab, ran.seconds, ran.measured, own).with_events(load, ran.fate);
    figures.verdicts = verdicts;
    figures
}

/// The picture of a run, in a file that was created before it: an hour later would be late to learn that it cannot be.
struct Plot<'a> {
    path: &'a FilePath,
    file: File,
}

impl<'a> Plot<'a> {
    fn create(path: &'a FilePath) -> Result<Self, Failure> {
        let file = File::create(path).map_err(Failure::unwritable("--plot", path))?;
        Ok(Self { path, file })
    }

    fn draw(mut self, without: Latency, over_time: &[(f64, Latency)]) -> Result<(), Failure> {
        let frame = Frame {
            title: "From commit to handler, while a snapshot is held",
            x: "minutes that it has been held",
            y: "milliseconds",
        };
        let line = |name: &str, of: &dyn Fn(Latency) -> u64| Line {
            name: name.to_owned(),
            points: over_time.iter().map(|(seconds, latency)| (seconds / 60.0, millis(of(*latency)))).collect(),
        };
        let lines = [
            line("p50", &|latency| latency.p50),
            line("p99", &|latency| latency.p99),
            line("p99 without a snapshot", &|_| without.p99),
        ];
        let svg = plot::lines(frame, &lines)?;
        self.file.write_all(svg.as_bytes()).map_err(Failure::unwritable("--plot", self.path))
    }
}

fn millis(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1e3
}

fn late_by_the_snapshot(without: Latency, held: Latency) -> Verdict {
    let ratio = rounded(millis(held.p99) / millis(without.p99.max(1)), 3);
    Verdict::new(
        Bound::AtMost(1.5),
        "p99",
        ratio,
        "the time that 99 % of the events are within, by that without a snapshot",
    )
}

fn slow_by_the_snapshot(without_per_s: f64, per_s: f64) -> Verdict {
    let ratio = rounded(per_s / without_per_s, 3);
    Verdict::new(
        Bound::AtLeast(0.9),
        "rate beside it",
        ratio,
        "what was written in a second, by that without a snapshot",
    )
}

fn rate_was_met(written_per_s: f64, rate: u32) -> Verdict {
    let kept = rounded(written_per_s / f64::from(rate), 3);
    Verdict::new(Bound::AtLeast(0.99), "rate", kept, "what was written in a second, by what was to be")
}

/// Compares the backlog in the last third of the writing with that in the first, in seconds of load.
fn backlog_did_not_grow(samples: &[Sample], writing: Duration, rate: u32) -> Verdict {
    let third = writing.as_secs_f64() / 3.0;
    let mean = |third: std::ops::Range<f64>| {
        let within: Vec<_> = samples.iter().filter(|sample| third.contains(&sample.seconds)).collect();
        let sum: u64 = within.iter().map(|sample| sample.backlog).sum();
        per_second(sum, f64::from(u32::try_from(within.len()).unwrap_or(u32::MAX)))
    };
    let grown = (mean(2.0 * third..3.0 * third) - mean(0.0..third)) / f64::from(rate);
    let meaning = "seconds of load that it has grown by, from the first third to the last";
    Verdict::new(Bound::AtMost(1.0), "backlog", rounded(grown, 3), meaning)
}

fn all_were_handled(done: u64, events: u32) -> Verdict {
    let share = share(done, events.into());
    Verdict::new(Bound::AtLeast(1.0), "handled", share, "the share of events that are DONE, by their rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_that_falls_behind_breaks_the_rate() {
        for (written_per_s, held) in [(1_000.0, true), (990.0, true), (989.0, false), (0.0, false)] {
            assert_eq!(rate_was_met(written_per_s, 1_000).held, held, "{written_per_s}");
        }
    }

    #[test]
    fn a_backlog_that_grows_by_more_than_a_second_is_seen() {
        let samples = |backlog: fn(u32) -> u64| -> Vec<Sample> {
            let sample = |tick: u32| Sample {
                seconds: f64::from(tick) / 10.0,
                written: 0,
                done: 0,
                backlog: backlog(tick),
                dead_tuples: None,
                wal_bytes: None,
            };
            // Nine seconds of writing; later samples are ignored.
            (0..120).map(sample).collect()
        };
        let verdict = |samples: &[Sample]| backlog_did_not_grow(samples, Duration::from_secs(9), 1_000);
        assert!(verdict(&samples(|_| 5_000)).held, "large, but steady");
        assert!(verdict(&samples(|tick| if tick > 90 { 90_000 } else { 0 })).held, "after the writing");
        assert!(verdict(&samples(|tick| u64::from(tick) * 10)).held, "a tenth of the load, 600 ms in all");
        assert!(!verdict(&samples(|tick| u64::from(tick) * 20)).held, "a fifth of the load, 1.2 s in all");
    }

    #[test]
    fn a_snapshot_that_makes_events_late_or_writers_slow_is_seen() {
        let latency = |p99| Latency { p99, ..Latency::default() };
        for (without, held, expected) in [(50_000, 75_000, true), (50_000, 76_000, false), (0, 1, true), (0, 2, false)]
        {
            assert_eq!(late_by_the_snapshot(latency(without), latency(held)).held, expected, "{without} {held}");
        }
        for (held, expected) in [(1_800.0, true), (1_790.0, false), (2_100.0, true)] {
            assert_eq!(slow_by_the_snapshot(2_000.0, held).held, expected, "{held}");
        }
    }

    #[test]
    fn an_event_that_was_not_handled_is_seen() {
        assert!(all_were_handled(3_000_000, 3_000_000).held);
        assert!(!all_were_handled(2_999_999, 3_000_000).held);
    }
}
