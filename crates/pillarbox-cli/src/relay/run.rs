use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pillarbox::error::ConfigError;
use pillarbox::ownership::NodeName;
use pillarbox::run::{Config, OutboxBuilder, kind};
use pillarbox::{Delivery, Outbox, Store};
use serde::Serialize;
use tokio::sync::oneshot;

use super::courier::Courier;
use super::output::Output;
use super::sink::{End, Sink};
use crate::args::{Destination, ModeArg, RelayArgs};
use crate::failure::Failure;
use crate::report::{self, counted};
use crate::signals::Signals;
use crate::{exporter, store};

/// Events under way at once, unless asked for otherwise: enough for a flush to be worth its while.
const WORKERS: usize = 32;
/// How long lines that were begun may take to be written when the relay stops.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long calls may take to end after that. Those that have an answer give it at once; the others have none.
const DRAIN: Duration = Duration::from_millis(100);
/// How often a standby looks whether it can take over: often enough to go on within a second of a clean stop.
const STANDBY: Duration = Duration::from_millis(500);
/// What a second signal ends with.
const INTERRUPTED: u8 = 130;

/// Delivers until it is told to stop, has written as many lines as it should, or cannot write any more.
pub(crate) async fn run(args: RelayArgs) -> Result<ExitCode, Failure> {
    // Opening a pipe waits for its reader, and a signal may end that.
    let output = Output::open(&args.to, args.fsync)?;
    let mut signals = Signals::listen().map_err(Failure::of_system("listen for signals"))?;
    if let Some(address) = args.metrics {
        exporter::install(address)?;
    }
    let (sink, end) = Sink::start(output, args.limit).map_err(Failure::of_system("start the thread that writes"))?;
    let courier = Arc::new(Courier::new(sink, args.delay));
    let started = tokio::select! {
        started = start(&args, &courier) => started,
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let (store, outbox) = started?;
    let ended = serve(&mut signals, end).await;
    let stopped = async {
        courier.close(PATIENCE).await;
        outbox.shutdown().await;
        store.close().await;
    };
    tokio::select! {
        () = stopped => {}
        () = signals.next() => {
            report::note("stopped at once; the lease of this node ends by itself");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    conclude(&args, ended, courier.lines())
}

/// Waits until there is a reason to stop; `None` if that is a signal.
async fn serve(signals: &mut Signals, end: oneshot::Receiver<End>) -> Option<End> {
    tokio::select! {
        () = signals.next() => None,
        end = end => Some(end.unwrap_or_else(|_| End::Failed(io::Error::other("the thread that writes has ended")))),
    }
}

async fn start(args: &RelayArgs, courier: &Arc<Courier>) -> Result<(Arc<dyn Store>, Outbox), Failure> {
    let store = store::existing(&args.target).await?;
    let outbox = match args.mode {
        ModeArg::SingleNode => launch(Outbox::single_node(Arc::clone(&store)), args, Arc::clone(courier)).await,
        ModeArg::MultiNode => launch(Outbox::multi_node(Arc::clone(&store)), args, Arc::clone(courier)).await,
        ModeArg::Ordered => launch(Outbox::ordered(Arc::clone(&store)), args, Arc::clone(courier)).await,
    };
    match outbox {
        Ok(outbox) => {
            let info = store.info();
            tracing::info!(table = info.table, address = info.address, to = %args.to, "the relay has started");
            Ok((store, outbox))
        }
        Err(failure) => {
            store.close().await;
            Err(failure)
        }
    }
}

async fn launch<K: kind::Deliverer>(
    builder: OutboxBuilder<K>,
    args: &RelayArgs,
    courier: Arc<Courier>,
) -> Result<Outbox, Failure> {
    let handler = move |delivery: Delivery| {
        let courier = Arc::clone(&courier);
        async move { courier.deliver(delivery).await }
    };
    Ok(builder.config(config(args)?).handle_all(handler).start().await?)
}

fn config(args: &RelayArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    match (args.mode, args.workers) {
        (ModeArg::Ordered, None | Some(1)) => {}
        (ModeArg::Ordered, Some(_)) => {
            let remedy = "leave it out, or choose another mode";
            return Err(ConfigError::new("workers", "does not apply to mode ordered, which has one", remedy).into());
        }
        (_, workers) => config.dispatch.workers = workers.map_or(WORKERS, usize::from),
    }
    if let Some(name) = &args.node_name {
        config.ownership.node_name = NodeName::new(name)?;
    }
    config.ownership.lease = args.lease;
    config.ownership.standby_interval = STANDBY;
    config.claim.max_interval = args.poll_interval;
    config.claim.min_interval = config.claim.min_interval.min(args.poll_interval);
    config.shutdown.drain_timeout = DRAIN;
    config.wake_up.enabled = args.wake_up;
    Ok(config)
}

/// The line of JSON that ends a relay to a file. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Summary {
    lines: u64,
}

/// Says how it ended. Where the lines went to stdout, they are all that stdout is for.
fn conclude(args: &RelayArgs, ended: Option<End>, lines: u64) -> Result<ExitCode, Failure> {
    match ended {
        Some(End::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(Failure::ReaderGone { destination: args.to.to_string(), lines })
        }
        Some(End::Failed(source)) => Err(Failure::Unwritable { destination: args.to.to_string(), lines, source }),
        Some(End::Limit) | None if args.to == Destination::Stdout => Ok(ExitCode::SUCCESS),
        Some(End::Limit) | None => {
            let verb = if lines == 1 { "was" } else { "were" };
            let text = || format!("{} {verb} appended to {}", counted(lines, "line"), args.to);
            report::print_either(args.target.json, &Summary { lines }, text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
