use std::time::Duration;

use clap::ValueEnum as _;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::args::IdleArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures};
use crate::lab::BenchDb;
use crate::meter::Measured;
use crate::nodes::Nodes;
use crate::process;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::progress::bar;
use pillarbox_program::report::{per_second, rounded};

/// An idle outbox: its statements and its CPU time, mode by mode.
pub(crate) async fn run(lab: &dyn BenchDb, args: &IdleArgs) -> Result<Figures, Failure> {
    let (after, time) = (Duration::from_secs(args.after.into()), Duration::from_secs(args.seconds.into()));
    let chosen = args.mode.as_ref().map_or(ModeArg::value_variants(), std::slice::from_ref);
    let (bar, mut modes) = (bar(chosen.len() as u64, "modes"), Vec::new());
    for mode in chosen {
        lab.clear().await?;
        lab.rest().await?;
        let mut nodes = Nodes::open(lab, 1, false).await?;
        let started = nodes.start(&Calls::sum_only(), &args.looks.settings(*mode)).await;
        let counted = match started {
            Ok(()) => count(lab, *mode, after, time).await,
            Err(failure) => Err(failure),
        };
        nodes.stop().await;
        modes.push(counted?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut own = OwnFigures::new("for which each mode was counted, after it was left alone for a while");
    own.add("modes", &modes, modes.iter().flat_map(|mode| mode.lines(lab.about().statements)))?;
    Ok(Figures::new("idle", lab, time.as_secs_f64(), Measured::default(), own))
}

/// The load of an idle outbox in one mode.
#[derive(Debug, Serialize)]
struct IdleMode {
    mode: &'static str,
    statements_per_s: Option<f64>,
    cpu_percent: Option<f64>,
}

impl IdleMode {
    fn lines(&self, statements: &'static str) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        let asked = self.statements_per_s.map(|per_s| (self.mode, format!("{per_s:.2}/s"), statements));
        let name = if asked.is_some() { "" } else { self.mode };
        let cpu =
            self.cpu_percent.map(|percent| (name, format!("{percent:.2} %"), "of one processor, by this process"));
        asked.into_iter().chain(cpu)
    }
}

async fn count(lab: &dyn BenchDb, mode: ModeArg, after: Duration, time: Duration) -> Result<IdleMode, Failure> {
    // The outbox polls less and less often while it finds nothing.
    sleep(after).await;
    // The database counts these readings too.
    let (first, before) = (lab.statements().await?, lab.statements().await?);
    let (started, cpu) = (Instant::now(), process::cpu_time());
    sleep(time).await;
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), grown(cpu, process::cpu_time()));
    let after = lab.statements().await?;
    let statements = first.zip(before).zip(after).map(|((first, before), after)| statements(first, before, after));
    Ok(IdleMode {
        mode: mode.name(),
        statements_per_s: statements.map(|statements| rounded(per_second(statements, seconds), 2)),
        cpu_percent: cpu.map(|cpu| rounded(cpu.as_secs_f64() / seconds * 100.0, 2)),
    })
}

fn grown(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

/// The statements of others between the second reading and the third, where a reading itself is counted.
fn statements(first: u64, second: u64, third: u64) -> u64 {
    third.saturating_sub(second).saturating_sub(second.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_is_not_counted() {
        assert_eq!(statements(10, 12, 14), 0);
        assert_eq!(statements(10, 12, 20), 6);
        assert_eq!(statements(10, 14, 15), 0, "another one asked between the first two readings");
    }
}
