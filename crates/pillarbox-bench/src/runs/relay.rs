use std::sync::Arc;
use std::time::Duration;

use pillarbox_relay::RelayError;

use super::backlog::{Backlog, Delivered};
use super::beside::{Beside, Path};
use crate::args::RelayBenchArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{Figures, LossCount, OwnFigures, share};
use crate::lab::BenchDb;
use crate::load::Load;
use crate::nodes::{NodeSettings, Nodes, Work};
use crate::passing::BrokerTarget;
use pillarbox_program::progress::bar;
use pillarbox_program::report;

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
    settings.work = Work::Message(passing.clone());

    lab.clear().await?;
    load.fill(&**lab, &bar(load.events.into(), "written")).await?;
    lab.rest().await?;
    settings.config.settle.delete_done = args.delete_done;
    let (calls, events) = (Calls::new(load), u64::from(load.events));
    let backlog = Backlog { lab: &**lab, load, nodes: 1, settings: &settings };
    let work = async |nodes: &Nodes| nodes.wait_until_done(events).await;
    let (Delivered { rows, measured, seconds }, ()) = backlog.deliver(&calls, || events, work).await?;
    let fate = LossCount::delivered(load, &calls, &rows, args.delete_done);

    let after = passing.publish_alone(load, workers, ALONE).await?;
    // The time at which each event was done is read from its row.
    settings.config.settle.delete_done = false;
    let steady = load.of_events(args.pace.events()?);
    let path = Path::Elsewhere { woken: lab.store().wake_ups().is_some() };
    let rate = args.pace.rate;
    let writers = args.writers.writers;
    let latency = Beside {
        lab,
        load: &steady,
        writers,
        rate: Some(rate),
        nodes: 1,
        settings,
        path,
        waited_for: false,
        snapshot_held: false,
    }
    .run()
    .await?;

    let info = passing.publisher.info();
    let mut own = OwnFigures::new(if args.delete_done {
        "from start() until the last event was confirmed and its row deleted, by the database's clock"
    } else {
        "from start() until the last event was confirmed and DONE, by the database's clock"
    });
    let broker = format!("{} at {}", info.kind, info.address);
    own.add("to", &info.kind, [])?;
    own.add("broker", &info.address, [("broker", broker, "which confirms each message")])?;
    own.mode(args.mode)?;
    own.add("workers", &workers, [("workers", workers.to_string(), "calls of the publisher at once")])?;
    own.add("batch", &args.batch, [("batch", args.batch.to_string(), "messages in a call at most")])?;
    let deleted = "rows of the backlog are deleted once their events are confirmed";
    own.flag("delete_done", args.delete_done, "delete done", deleted)?;
    let written = "of events written, each in a transaction, for the figures below; their rows are kept";
    own.add("rate", &rate, [("rate", report::rate(rate.into()), written)])?;
    own.latency("commit_to_confirmed_us", latency.calls.stopwatch.latency(), "commit to confirmed")?;
    own.within_a_second(share(latency.rows.done_within_1s, steady.events.into()))?;
    let figures = Figures::new("relay", &**lab, seconds, measured, own);
    let alone = "messages published and confirmed alone: the same client, without a database, before and after";
    Ok(figures.with_events(load, fate.and(latency.fate)).with_yardstick_of(f64::midpoint(before, after), alone))
}
