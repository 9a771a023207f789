use std::sync::Arc;

use pillarbox::write::insert;
use pillarbox::{Admin as _, MemoryStore};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::OverheadArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{Costs, Figures, LossCount, MEMORY, OwnFigures};
use crate::lab::{About, Counted};
use crate::load::Load;
use crate::meter::Measured;
use crate::nodes::{NodeSettings, Nodes};
use crate::process;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::report::per_second;

/// The engine alone: claiming from a store in memory, dispatching, settling. Its yardstick is a channel of tokio that carries
/// as many messages to as many tasks.
pub(crate) async fn run(args: &OverheadArgs) -> Result<Figures, Failure> {
    let load = Load::new(args.events, args.payload);
    let store = MemoryStore::default();
    for batch in load.batches() {
        let mut tx = store.begin();
        insert(&store, &mut tx, batch?).await.map_err(Failure::during("write"))?;
        tx.commit();
    }
    let before = channel(args.events, args.workers).await?;
    let calls = Calls::sum_only();
    let mut settings = NodeSettings::from(ModeArg::SingleNode);
    settings.config.dispatch.workers = args.workers.into();
    let mut nodes = Nodes::on(Arc::new(store.clone()));
    let (started, cpu) = (Instant::now(), process::cpu_time());
    let delivered = async {
        nodes.start(&calls, &settings).await?;
        nodes.wait_until_done(load.events.into()).await
    }
    .await;
    let (seconds, cpu_after) = (started.elapsed().as_secs_f64(), process::cpu_time());
    let done = store.counts().await?.done;
    nodes.stop().await;
    delivered?;
    let yardstick = f64::midpoint(before, channel(args.events, args.workers).await?);

    let costs = Costs::of_cpu(cpu, cpu_after, load.events.into());
    let measured = Measured { costs, ..Measured::default() };
    let mut own = OwnFigures::new("from start() until all were recorded as DONE");
    own.count("workers", args.workers, "workers", "handlers that run at once, and tasks of the yardstick")?;
    let channels = "messages to as many tasks, each with a channel of tokio";
    let about = About { yardstick: channels, counted: Counted::Statements, statements: "", wal: "" };
    let figures = Figures::of("overhead", MEMORY.to_owned(), about, seconds, measured, own);
    Ok(figures.with_events(&load, LossCount::summed(&load, &calls, done)).with_yardstick(yardstick))
}

/// Sends messages to tasks in turn, and waits until all are received. Returns messages per second.
async fn channel(messages: u32, tasks: u16) -> Result<f64, Failure> {
    /// As many as the engine lets wait in memory.
    const WAITING: usize = 2000;
    let capacity = (WAITING / usize::from(tasks)).max(1);
    let mut receivers = JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..tasks {
        let (sender, mut receiver) = mpsc::channel::<Arc<str>>(capacity);
        senders.push(sender);
        receivers.spawn(async move {
            let mut received = 0_u64;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            received
        });
    }
    let message: Arc<str> = "message".into();
    let started = Instant::now();
    for (_, sender) in (0..messages).zip(senders.iter().cycle()) {
        sender.send(Arc::clone(&message)).await.map_err(Failure::during("measure the yardstick"))?;
    }
    drop(senders);
    let mut received = 0;
    while let Some(taken) = receivers.join_next().await {
        received += taken?;
    }
    Ok(per_second(received, started.elapsed().as_secs_f64()))
}
