//! Benchmarks that compare between machines: most measure a bare `UPDATE` of the same database before and after, and
//! print the ratio. Rows are counted in the database, never in the bench's own memory; only calls of the handler are
//! counted in the process, because a handler that does nothing leaves no trace elsewhere.

mod args;
mod calls;
mod failure;
mod figures;
mod lab;
mod load;
mod meter;
mod nodes;
mod order;
mod passing;
mod process;
mod report;
mod runs;
mod writers;

use std::process::ExitCode;
use std::sync::Arc;

use args::{Bench, BenchArgs, Benches, Measure, Shown};
use clap::Parser as _;
use failure::Failure;
use figures::Figures;
use lab::BenchDb;
use load::Load;
use mimalloc::MiMalloc;
use pillarbox_console::address::Address;
use pillarbox_console::failure::sentence;
use pillarbox_console::report::{note, print_either};
use pillarbox_console::{arguments, log};
use runs::{drain, hot, idle, latency, memory, mixed, overhead, relay, steady, write};

/// Each event is a handful of small texts, made by one thread and dropped by another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match BenchArgs::try_parse() {
        Ok(args) => args,
        Err(error) => return arguments::refuse(&error),
    };
    log::start("warn", false);
    // Fails only if a provider is installed already, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    run(args).await.unwrap_or_else(|failure| {
        note(&format!("error: {}", sentence(&failure)));
        failure.exit_code()
    })
}

/// Runs one bench, or all. It fails when an event was lost, delivered twice or out of order, however fast, and when a
/// verdict of the bench does not hold.
async fn run(args: BenchArgs) -> Result<ExitCode, Failure> {
    let bench = match args.benches {
        Benches::One(bench) => bench,
        Benches::All(args) => return report::run(&args).await,
    };
    let (shown, figures) = measure(bench).await?;
    let figures = if shown.samples { figures } else { figures.without_samples() };
    print_either(shown.json, &figures, || figures.text())?;
    Ok(if figures.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(bench: Bench) -> Result<(Shown, Figures), Failure> {
    match bench {
        Bench::Write { common, events } => {
            let load = Load::new(events, common.payload);
            on(&common, 1, async |lab| write::run(&**lab, &load).await).await
        }
        Bench::Hot { common, hot } => {
            let (load, writers) = (Load::new(hot.events, common.payload), hot.writers.writers);
            on(&common, writers, async |lab| hot::run(lab, &load, writers).await).await
        }
        Bench::Drain { common, drain } => {
            drain.check(&Address::parse(&common.store)?)?;
            let load = Load::new(drain.events, common.payload).of_keys(drain.keys()?);
            on(&common, drain.writers.max(1), async |lab| drain::run(lab, &load, &drain).await).await
        }
        Bench::Steady { common, steady } => {
            let load = Load::new(steady.pace.events()?, common.payload);
            on(&common, steady.writers.writers, async |lab| steady::run(lab, &load, &steady).await).await
        }
        Bench::Latency { common, latency } => {
            let load = Load::new(latency.pace.events()?, common.payload);
            on(&common, latency.writers.writers, async |lab| latency::run(lab, &load, &latency).await).await
        }
        Bench::Mixed { common, mixed } => {
            let load = Load::new(mixed.events, common.payload);
            on(&common, mixed.writers.writers, async |lab| mixed::run(lab, &load, &mixed).await).await
        }
        Bench::Memory { common, memory } => {
            let load = Load::new(memory.events, common.payload);
            on(&common, 1, async |lab| memory::run(&**lab, &load, &memory).await).await
        }
        Bench::Relay { common, relay } => {
            let load = Load::new(relay.events, common.payload);
            on(&common, relay.writers.writers, async |lab| relay::run(lab, &load, &relay).await).await
        }
        Bench::Idle(args) => {
            let figures = on_store(&args.store, 1, async |lab| idle::run(&**lab, &args).await).await?;
            Ok((Shown { json: args.json, samples: false }, figures))
        }
        Bench::Overhead(args) => Ok((args.shown, overhead::run(&args).await?)),
    }
}

async fn on(
    common: &Measure,
    writers: u16,
    bench: impl AsyncFnOnce(&Arc<dyn BenchDb>) -> Result<Figures, Failure>,
) -> Result<(Shown, Figures), Failure> {
    Ok((common.shown, on_store(&common.store, writers, bench).await?))
}

/// Runs a bench on a database, with a connection for each writer, beside those of the outbox.
async fn on_store(
    store: &str,
    writers: u16,
    bench: impl AsyncFnOnce(&Arc<dyn BenchDb>) -> Result<Figures, Failure>,
) -> Result<Figures, Failure> {
    let lab = lab::open(store, writers.into()).await?;
    let measured = async {
        lab.create_yardstick().await?;
        bench(&lab).await
    };
    let figures = measured.await;
    lab.close().await;
    figures
}
