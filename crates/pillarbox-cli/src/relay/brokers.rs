use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;

use futures_util::stream;
use pillarbox::error::ConfigError;
use pillarbox_relay::{Preview, Relay, RelayError, RelayFile, SourceDrained};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::drained_json::{DrainedJson, exit_code};
use crate::args::RelayArgs;
use crate::failure::Failure;
use pillarbox_program::report;
use pillarbox_program::signals::{INTERRUPTED, Reloads, Signals};

/// Pending events that a dry run looks at in each database.
const PREVIEWED: usize = 1_000_000;

/// The line of JSON of `--check`. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Checked {
    ok: bool,
    problems: Vec<String>,
    /// The targets that were not checked, since they depend on the event.
    unchecked: Vec<String>,
    /// Variables of the environment that change nothing, each with the reason.
    warnings: Vec<String>,
}

/// The reason why a variable of the environment changes nothing.
const UNCLAIMED: &str = "no source of the file has such a name; those of a source `shop` begin with PILLARBOX_SHOP_";

/// Delivers to brokers as a file configures it, checks the file, or previews it.
pub(super) async fn run(file: &Path, args: &RelayArgs) -> Result<ExitCode, Failure> {
    let store = &args.target.store;
    if !store.is_empty() && std::env::var("PILLARBOX_STORE").as_ref() != Ok(store) {
        let remedy = "leave it out; databases are named in the file";
        return Err(ConfigError::new("--store", "does not apply beside --config", remedy).into());
    }
    let read = match RelayFile::read(file) {
        Err(error) if args.check && args.target.json => {
            let checked = Checked { ok: false, problems: error.lines(), unchecked: Vec::new(), warnings: Vec::new() };
            report::print(&serde_json::to_string(&checked)?)?;
            return Ok(ExitCode::from(2));
        }
        read => read.map_err(RelayError::from)?,
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unclaimed = read.unclaimed_variables(names);
    let warnings: Vec<String> =
        unclaimed.iter().map(|variable| format!("the variable {variable} changes nothing: {UNCLAIMED}")).collect();
    for warning in &warnings {
        if args.check || args.dry_run {
            report::note(&format!("warning: {warning}"));
        } else {
            // In the form of the log, which may be JSON.
            tracing::warn!("{warning}");
        }
    }
    let relay = Relay::new(read)?;
    if args.check {
        return check(&relay, warnings, args.target.json).await;
    }
    if args.dry_run {
        let preview = relay.preview(PREVIEWED).await?;
        report::print_either(args.target.json, &preview, || text(&preview))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut signals = Signals::listen().map_err(Failure::of_system("listen for signals"))?;
    if args.once {
        return drain(relay, args, &mut signals).await;
    }
    let reloads = Reloads::listen().map_err(Failure::of_system("listen for signals"))?;
    let files = stream::unfold(reloads, |mut reloads| async move {
        reloads.next().await;
        Some((RelayFile::read(file), reloads))
    });
    let stop = CancellationToken::new();
    let running = relay.run_reloading(stop.cancelled(), files);
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => {
            ended?;
            return Ok(ExitCode::SUCCESS);
        }
        () = signals.next() => stop.cancel(),
    }
    tokio::select! {
        ended = &mut running => ended?,
        () = signals.next() => {
            report::note("stopped at once; the leases of this process end by themselves");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON of `--once`. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Drained<'a> {
    sources: Vec<LeftBySource<'a>>,
}

/// The rows that a source has left.
#[derive(Debug, Serialize)]
struct LeftBySource<'a> {
    source: &'a str,
    /// `null` if it was stopped before it had started.
    left: Option<DrainedJson>,
}

/// Delivers what is due from every source, and ends.
async fn drain(relay: Relay, args: &RelayArgs, signals: &mut Signals) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    let mut draining = pin!(relay.drain(args.deadline, stop.cancelled()));
    let ended = tokio::select! {
        ended = &mut draining => Some(ended),
        () = signals.next() => None,
    };
    stop.cancel();
    let left = match ended {
        Some(left) => left?,
        None => tokio::select! {
            ended = draining => ended?,
            () = signals.next() => {
                report::note("stopped at once; the leases of this process end by themselves");
                return Ok(ExitCode::from(INTERRUPTED));
            }
        },
    };
    let of_source = |drained: &SourceDrained| drained.left.map(DrainedJson::from);
    let sources = left.iter().map(|drained| LeftBySource { source: &drained.source, left: of_source(drained) });
    report::print_either(args.target.json, &Drained { sources: sources.collect() }, || {
        let line = |drained: &SourceDrained| {
            let left = of_source(drained).map_or("it had not started".to_owned(), |left| left.text());
            format!("{}: {left}", report::plain(&drained.source))
        };
        left.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(exit_code(left.iter().all(SourceDrained::is_complete)))
}

async fn check(relay: &Relay, warnings: Vec<String>, json: bool) -> Result<ExitCode, Failure> {
    let pillarbox_relay::Checked { problems: errors, unchecked, .. } = relay.check().await;
    let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let checked = Checked { ok: problems.is_empty(), problems, unchecked, warnings };
    report::print_either(json, &checked, || {
        let mut text = match (checked.ok, &checked.unchecked[..]) {
            (true, []) => "everything is as the file says".to_owned(),
            (true, _) => "what could be checked is as the file says".to_owned(),
            (false, _) => checked.problems.iter().map(|problem| report::plain(problem)).collect::<Vec<_>>().join("\n"),
        };
        for unchecked in &checked.unchecked {
            text.push_str("\nnot checked, since it depends on the event: ");
            text.push_str(&report::plain(unchecked));
        }
        text
    })?;
    Ok(match &errors[..] {
        [] => ExitCode::SUCCESS,
        errors if errors.iter().any(RelayError::is_in_the_file) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    })
}

/// A line for each event type and destination.
fn text(preview: &Preview) -> String {
    let rows = preview.lines.iter().map(|line| {
        [
            report::plain(&line.source),
            report::plain(&line.event_type),
            report::grouped(line.events),
            report::or_dash(line.route.as_deref()),
            report::or_dash(line.broker.as_deref()),
            report::plain(&line.target),
        ]
    });
    let table = report::listing(["SOURCE", "EVENT TYPE", "EVENTS", "ROUTE", "BROKER", "TO"], rows);
    let more = if preview.more { "; there are more" } else { "" };
    format!("{table}\n\n{} events that are due now{more}. Delayed ones are not shown.", report::grouped(preview.events))
}
