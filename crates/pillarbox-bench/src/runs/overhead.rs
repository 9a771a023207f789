use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::OverheadArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{BenchSpecific, Costs, Figures, LossCount, OverheadFigures};
use crate::lab::MemoryLab;
use crate::load::Load;
use crate::meter::Measured;
use crate::nodes::{NodeSettings, Nodes};
use crate::process;
use pillarbox_console::arguments::ModeArg;
use pillarbox_console::report::per_second;

/// The engine alone: claiming from a store in memory, dispatching, settling. Its yardstick is a channel of tokio that carries
/// as many messages to as many tasks.
pub(crate) async fn run(args: &OverheadArgs) -> Result<Figures, Failure> {
    let load = Load::new(args.events, args.payload);
    let lab = MemoryLab::default();
    lab.fill(&load).await?;
    let before = channel(args.events, args.workers).await?;
    let calls = Calls::sum_only();
    let mut settings = NodeSettings::from(ModeArg::SingleNode);
    settings.config.dispatch.workers = args.workers.into();
    let mut nodes = Nodes::on(lab.store());
    let (started, cpu) = (Instant::now(), process::cpu_time());
    let delivered = async {
        nodes.start(&calls, &settings).await?;
        nodes.wait_until_done(load.events.into()).await
    }
    .await;
    let (seconds, cpu_after) = (started.elapsed().as_secs_f64(), process::cpu_time());
    let done = lab.done().await?;
    nodes.stop().await;
    delivered?;
    let yardstick = f64::midpoint(before, channel(args.events, args.workers).await?);

    let costs = Costs::of_cpu(cpu, cpu_after, load.events.into());
    let measured = Measured { costs, ..Measured::default() };
    let own = BenchSpecific::Overhead(OverheadFigures { workers: args.workers });
    let figures = Figures::in_memory("overhead", seconds, measured, own);
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
