use std::sync::Arc;
use std::time::Duration;

use pillarbox_relay::RelayError;

use super::beside::{Beside, Path};
use crate::args::RelayBenchArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{BenchSpecific, Figures, LossCount, RelayFigures, share};
use crate::lab::{BenchDb, seconds_between};
use crate::load::Load;
use crate::meter::{Goal, Meter, Progress};
use crate::nodes::{NodeSettings, Nodes};
use crate::passing::BrokerTarget;
use pillarbox_console::progress::bar;

/// The time for which messages are published alone, before the backlog and after it.
const ALONE: Duration = Duration::from_secs(2);

/// A backlog passed on to a broker, each event DONE once it is confirmed; then events at a steady rate, to measure the
/// time from commit to confirmation. The yardstick is publishing alone.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &RelayBenchArgs) -> Result<Figures, Failure> {
    let publisher = pillarbox_relay::publisher_at(args.to.kind(), args.url()).map_err(RelayError::from)?;
    let passing = BrokerTarget { publisher, target: args.target().into(), batch: args.batch.into() };
    let measured = measure(lab, load, args, &passing).await;
    passing.publisher.close().await;
    measured
}

async fn measure(
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    args: &RelayBenchArgs,
    passing: &BrokerTarget,
) -> Result<Figures, Failure> {
    let targets = [passing.target.to_string()];
    passing.publisher.check(&targets).await.map_err(|error| passing.refused(&error))?;
    let workers = usize::from(args.workers);
    let before = passing.publish_alone(load, workers, ALONE).await?;

    let mut settings = NodeSettings::from(args.mode);
    settings.config.dispatch.workers = workers;
    settings.config.dispatch.cold_capacity = 8000;
    settings.passing = Some(passing.clone());

    lab.clear().await?;
    load.fill(&**lab, &bar(load.events.into(), "written")).await?;
    lab.rest().await?;
    let calls = Calls::new(load);
    let mut nodes = Nodes::open(&**lab, 1).await?;
    let mut meter = Meter::start(&**lab, Goal::Deliver(load.events)).await?;
    let events = u64::from(load.events);
    settings.config.settle.delete_done = args.delete_done;
    let drained = async {
        let started = lab.now().await?;
        nodes.start(&calls, &settings).await?;
        let progress = || Progress { written: events, done: nodes.done() };
        meter.watch(progress, nodes.wait_until_done(events)).await?;
        Ok::<_, Failure>((started, lab.now().await?))
    }
    .await;
    nodes.stop().await;
    let (started, ended) = drained?;
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    // A deleted row has no `done_at`.
    let seconds = seconds_between(started, if args.delete_done { ended } else { rows.last_done_at });
    let fate = LossCount::delivered(load, &calls, &rows, args.delete_done);

    let after = passing.publish_alone(load, workers, ALONE).await?;
    // The time at which each event was done is read from its row.
    settings.config.settle.delete_done = false;
    let steady = load.of_events(args.pace.events()?);
    let path = Path::Elsewhere { woken: lab.store().wake_ups().is_some() };
    let rate = args.pace.rate;
    let writers = args.writers.writers;
    let latency = Beside { lab, load: &steady, writers, rate: Some(rate), nodes: 1, settings, path }.run().await?;

    let info = passing.publisher.info();
    let relay = RelayFigures {
        to: info.kind,
        broker: info.address.clone(),
        mode: args.mode.name(),
        workers: args.workers,
        batch: args.batch,
        delete_done: args.delete_done,
        rate,
        commit_to_confirmed_us: latency.calls.stopwatch.latency(),
        done_within_1s: share(latency.rows.done_within_1s, steady.events.into()),
    };
    let figures = Figures::new("relay", &**lab, seconds, measured, BenchSpecific::Relay(relay));
    let alone = "messages published and confirmed alone: the same client, without a database, before and after";
    Ok(figures.with_events(load, fate.and(latency.fate)).with_yardstick_of(f64::midpoint(before, after), alone))
}
