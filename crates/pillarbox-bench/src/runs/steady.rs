use std::sync::Arc;
use std::time::Duration;

use super::beside::{Beside, Path, SECONDS};
use crate::args::SteadyArgs;
use crate::failure::Failure;
use crate::figures::{Bound, Figures, OwnFigures, Sample, Verdict, share};
use crate::lab::BenchDb;
use crate::load::Load;
use pillarbox_program::report::{self, per_second, rounded};

/// Writers at a steady rate, each transaction one event, while the events are delivered: does the outbox keep up with them?
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &SteadyArgs) -> Result<Figures, Failure> {
    let (rate, writers) = (args.pace.rate, args.writers.writers);
    let path = if args.cold { Path::Elsewhere { woken: false } } else { Path::Memory };
    let settings = args.mode.into();
    let ran = Beside { lab, load, writers, rate: Some(rate), nodes: args.nodes, settings, path, waited_for: false }
        .run()
        .await?;

    let written_per_s = per_second(load.events.into(), ran.writing.as_secs_f64());
    let verdicts = vec![
        rate_was_met(written_per_s, rate),
        backlog_did_not_grow(&ran.measured.samples, ran.writing, rate),
        all_were_handled(ran.rows.done, load.events),
    ];
    let told =
        if args.cold { "from the table, which nobody tells them of" } else { "told of each commit by the guard" };
    let mut own = OwnFigures::new(SECONDS);
    own.mode(args.mode)?;
    own.count("nodes", args.nodes, "nodes", told)?;
    own.writers(writers)?;
    own.add("rate", &rate, [("rate", report::rate(rate.into()), "to be written by all of them")])?;
    own.add("cold", &args.cold, [])?;
    own.written(written_per_s)?;
    own.within_a_second(share(ran.rows.done_within_1s, load.events.into()))?;
    own.latency("commit_to_handler_us", ran.calls.stopwatch.latency(), "commit to handler")?;
    let mut figures = Figures::new("steady", &**lab, ran.seconds, ran.measured, own).with_events(load, ran.fate);
    figures.verdicts = verdicts;
    Ok(figures)
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
    fn an_event_that_was_not_handled_is_seen() {
        assert!(all_were_handled(3_000_000, 3_000_000).held);
        assert!(!all_were_handled(2_999_999, 3_000_000).held);
    }
}
