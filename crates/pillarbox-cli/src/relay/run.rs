use std::future::pending;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pillarbox::error::{ConfigError, StartError, StoreError};
use pillarbox::handle::{Events, on_type};
use pillarbox::run::{Config, Drained, NodeName, applies, start_unless, why_ignored};
use pillarbox::{Delivery, Outbox, Store};
use pillarbox_relay::{Endpoint, Report, Reports, SourceReport};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::drained_json::{DrainedJson, exit_code};
use super::json_line_handler::JsonLineHandler;
use super::line_writer::{End, LineWriter};
use super::output::Output;
use crate::args::{OutputSpec, RelayArgs};
use crate::failure::Failure;
use crate::store;
use pillarbox_program::failure::about_option;
use pillarbox_program::report::{self, counted};
use pillarbox_program::signals::{INTERRUPTED, Signals};

/// The default number of events under way at once: enough to make a flush worthwhile.
const WORKERS: usize = 32;
/// The time that lines under way may take to be written when the relay stops.
const LINE_WAIT: Duration = Duration::from_secs(5);
/// The time that calls may take to end after that. Those that have an answer give it at once; the others have none.
const DRAIN: Duration = Duration::from_millis(100);
/// The interval at which a standby tries to take over: short enough to go on within a second of a clean stop.
const STANDBY: Duration = Duration::from_millis(500);

/// Delivers until a signal stops it, the limit of lines is reached, a write fails, or nothing due is left if that was asked for.
pub(super) async fn run(args: RelayArgs) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let config = config(&args)?;
    // Opening a pipe waits for its reader, and a signal may end that.
    let output = Output::open(&args.to, args.fsync)?;
    let mut signals = Signals::listen_with_hangup().map_err(Failure::of_system("listen for signals"))?;
    let endpoint = Endpoint::open(args.metrics).await?;
    let running: Arc<OnceLock<(Arc<dyn Store>, Outbox)>> = Arc::default();
    let serving = endpoint.serve(reports(&running));
    let (line_writer, end) =
        LineWriter::start(output, args.limit).map_err(Failure::of_system("start the thread that writes"))?;
    let json_lines = Arc::new(JsonLineHandler::new(line_writer, args.delay));
    let mut late = false;
    let stop = async {
        tokio::select! {
            () = signals.next() => {}
            () = sleep(args.deadline), if args.once => late = true,
        }
    };
    let started = start(&args, config, &json_lines, stop).await.map_err(|failure| failure.on(&args.target))?;
    let Some(started) = started else { return if late { Err(Failure::NotInTime) } else { Ok(exit_code(!args.once)) } };
    let (store, outbox) = running.get_or_init(|| started).clone();
    let mut draining = pin!(drain(&outbox, args.once.then(|| args.deadline.saturating_sub(began.elapsed()))));
    let (ended, left) = tokio::select! {
        left = &mut draining => (None, Some(left)),
        ended = serve(&mut signals, end) => (ended, None),
    };
    let stopped = async {
        json_lines.close(LINE_WAIT).await;
        outbox.shutdown_within(DRAIN).await;
        let left = match left {
            Some(left) => Some(left),
            // Told to stop before: what is left is counted now.
            None if args.once => Some(draining.await),
            None => None,
        };
        store.close().await;
        // Last, so that a probe sees the relay stop.
        serving.close().await;
        left
    };
    let left = tokio::select! {
        left = stopped => left,
        () = signals.next() => {
            report::note("stopped at once; the lease of this node ends by itself");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    conclude(&args, ended, json_lines.lines(), left.transpose()?)
}

/// Delivers what is due; does not end where there is no deadline.
async fn drain(outbox: &Outbox, deadline: Option<Duration>) -> Result<Drained, StoreError> {
    match deadline {
        Some(deadline) => outbox.drain(deadline).await,
        None => pending().await,
    }
}

/// The pages of the endpoint: one source, named after its table.
fn reports(running: &Arc<OnceLock<(Arc<dyn Store>, Outbox)>>) -> Reports {
    let running = Arc::clone(running);
    let source = move || {
        let (store, outbox) = running.get()?;
        let info = store.info();
        let report = SourceReport::started(&*info.table, info, outbox.health(), Vec::new());
        Some(SourceReport { paused: outbox.known_pauses(), ..report })
    };
    Arc::new(move || Report { configuration: None, sources: source().map(|source| vec![source]) })
}

/// Waits until there is a reason to stop; `None` if that is a signal.
async fn serve(signals: &mut Signals, end: oneshot::Receiver<End>) -> Option<End> {
    tokio::select! {
        () = signals.next() => None,
        end = end => Some(end.unwrap_or_else(|_| End::Failed(io::Error::other("the thread that writes has ended")))),
    }
}

/// Starts to deliver; `None` if it is told to stop before, and then nothing is left behind.
async fn start(
    args: &RelayArgs,
    config: Config,
    json_lines: &Arc<JsonLineHandler>,
    stop: impl Future<Output = ()>,
) -> Result<Option<(Arc<dyn Store>, Outbox)>, Failure> {
    let mut stop = pin!(stop);
    let store = tokio::select! {
        store = store::existing(&args.target) => store?,
        () = &mut stop => return Ok(None),
    };
    let json_lines = Arc::clone(json_lines);
    let handler = move |delivery: Delivery| {
        let json_lines = Arc::clone(&json_lines);
        async move { json_lines.deliver(delivery).await }
    };
    let handler = on_type(Events::Others, handler).for_any_name();
    let starting = Outbox::builder(args.mode).store(Arc::clone(&store)).config(config).handler(handler).start();
    match start_unless(starting, stop).await {
        Ok(None) => {
            store.close().await;
            Ok(None)
        }
        Ok(Some(outbox)) => {
            let info = store.info();
            tracing::info!(table = info.table, address = info.address, to = %args.to, "the relay has started");
            Ok(Some((store, outbox)))
        }
        Err(error) => {
            store.close().await;
            Err(match error {
                StartError::Config(error) => by_option(error).into(),
                error => error.into(),
            })
        }
    }
}

/// The error under the name of the option that the setting came from, if there is one.
fn by_option(error: ConfigError) -> ConfigError {
    let option = match error.field() {
        "claim.max_interval" | "claim.min_interval" => "--poll-interval",
        "dispatch.workers" => "--workers",
        "node_name" => "--node-name",
        "ownership.lease" => "--lease",
        "wake_up.enabled" => "--wake-up",
        _ => return error,
    };
    about_option(option, &error)
}

fn config(args: &RelayArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    if args.fsync && args.to == OutputSpec::Stdout {
        let remedy = "leave it out, or write to a file with `--to file:PATH`";
        return Err(ConfigError::new("--fsync", "does not apply to stdout, which is no disk", remedy).into());
    }
    let applies = |key: &str| applies(key, args.mode.into());
    let check = |option: &'static str, given: bool, key: &str| {
        if !given || applies(key) {
            return Ok(());
        }
        let problem = format!("does not apply to mode {}", args.mode.name());
        Err(match why_ignored(key, args.mode.into()) {
            Some((why, instead)) => {
                ConfigError::new(option, format!("{problem}, {why}"), format!("leave it out, {instead}"))
            }
            None => ConfigError::new(option, problem, "leave it out, or choose another mode"),
        })
    };
    check("--workers", args.workers.is_some_and(|workers| workers > 1), "dispatch.workers")?;
    check("--failing-key", args.failing_key.is_some(), "retry.failing_key")?;
    if applies("dispatch.workers") {
        config.dispatch.workers = args.workers.map_or(WORKERS, usize::from);
    }
    // A reader may take as long as it likes: a line that waits for it has not failed.
    config.dispatch.handler_timeout = None;
    if let Some(failing) = args.failing_key {
        config.retry.failing_key = failing.into();
    }
    if let Some(name) = &args.node_name {
        config.ownership.node_name = Some(NodeName::new(name).map_err(by_option)?);
    }
    config.ownership.lease = args.lease;
    if applies("ownership.standby_interval") {
        config.ownership.standby_interval = STANDBY;
    }
    config.claim.max_interval = args.poll_interval;
    config.claim.min_interval = config.claim.min_interval.min(args.poll_interval);
    // Lines may take as long to be written when their partitions go to another relay.
    config.shutdown.drain_timeout = LINE_WAIT;
    config.settle.delete_done = args.delete_done;
    config.wake_up.enabled = args.wake_up;
    // Before a file is created and a connection made.
    config.validate().map_err(by_option)?;
    Ok(config)
}

/// The line of JSON that ends a relay to a file. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Summary {
    lines: u64,
    /// The rows that `--once` has left.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<DrainedJson>,
}

/// Reports the end of the relay. If the lines went to stdout, nothing else is printed there.
fn conclude(args: &RelayArgs, ended: Option<End>, lines: u64, drained: Option<Drained>) -> Result<ExitCode, Failure> {
    let destination = || args.to.to_string();
    match ended {
        Some(End::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Err(Failure::ReaderGone { destination: destination(), lines });
        }
        Some(End::Failed(source)) => return Err(Failure::Unwritable { destination: destination(), lines, source }),
        Some(End::Limit) | None => {}
    }
    let left = drained.map(DrainedJson::from);
    if args.to == OutputSpec::Stdout {
        if let Some(left) = left {
            report::note(&if args.target.json { serde_json::to_string(&left)? } else { left.text() });
        }
    } else {
        let verb = if lines == 1 { "was" } else { "were" };
        let text = || {
            let written = format!("{} {verb} appended to {}", counted(lines, "line"), args.to);
            match left {
                Some(left) => format!("{written}\n{}", left.text()),
                None => written,
            }
        };
        report::print_either(args.target.json, &Summary { lines, left }, text)?;
    }
    Ok(exit_code(drained.is_none_or(|drained| drained.is_complete())))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_reader_that_stalls_makes_no_attempt_fail() {
        for mode in ["single_node", "multi_node", "partitioned", "ordered"] {
            let cli = Cli::try_parse_from(["pillarbox", "relay", "--store", "shop.db", "--mode", mode]).unwrap();
            let Command::Relay(args) = cli.command else { panic!("another command") };
            assert_eq!(config(&args).unwrap().dispatch.handler_timeout, None, "{mode}");
        }
    }
}
