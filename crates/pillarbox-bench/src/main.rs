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
mod waiting;
mod writers;

use std::process::ExitCode;
use std::sync::Arc;

use args::{Bench, BenchArgs, Benches, Measure, Shown};
use clap::{Args, Parser as _};
use failure::Failure;
use figures::Figures;
use lab::BenchDb;
use load::Load;
use mimalloc::MiMalloc;
use pillarbox_program::address::Address;
use pillarbox_program::failure::sentence;
use pillarbox_program::report::{note, print_either};
use pillarbox_program::{arguments, log};
use runs::{console, drain, flat_out, idle, latency, memory, overhead, purge, relay, steady, write};

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
    let (shown, mut figures) = measure(bench).await?;
    if !shown.samples {
        figures.samples.clear();
    }
    print_either(shown.json, &figures, || figures.text())?;
    Ok(if figures.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(bench: Bench) -> Result<(Shown, Figures), Failure> {
    match bench {
        Bench::Write(args) => on(&args, args.own.events, 1, async |lab, load| write::run(&**lab, &load).await).await,
        Bench::Hot(args) => {
            let writers = args.own.writers.writers;
            on(&args, args.own.events, writers, async |lab, load| flat_out::hot(lab, &load, writers).await).await
        }
        Bench::Drain(args) => {
            let drain = &args.own;
            drain.check(&Address::parse(&args.store)?)?;
            let keys = drain.keys()?;
            let run = async |lab: &Arc<dyn BenchDb>, load: Load| drain::run(lab, &load.of_keys(keys), drain).await;
            on(&args, drain.events, drain.connections(), run).await
        }
        Bench::Steady(args) => {
            let (steady, writers) = (&args.own, args.own.writers.writers);
            let held = steady.events_beside_snapshot(&Address::parse(&args.store)?)?;
            on(&args, steady.pace.events()?, writers, async |lab, load| steady::run(lab, &load, steady, held).await)
                .await
        }
        Bench::Latency(args) => {
            let (latency, writers) = (&args.own, args.own.writers.writers);
            on(&args, latency.pace.events()?, writers, async |lab, load| latency::run(lab, &load, latency).await).await
        }
        Bench::Mixed(args) => {
            let (settings, writers) = (args.own.looks.settings(args.own.mode), args.own.writers.writers);
            on(&args, args.own.events, writers, async |lab, load| flat_out::mixed(lab, &load, writers, settings).await)
                .await
        }
        Bench::Memory(args) => {
            let memory = &args.own;
            on(&args, memory.events, 1, async |lab, load| memory::run(&**lab, &load, memory).await).await
        }
        Bench::Relay(args) => {
            let (relay, writers) = (&args.own, args.own.writers.writers);
            on(&args, relay.events, writers, async |lab, load| relay::run(lab, &load, relay).await).await
        }
        Bench::Idle(args) => {
            let figures = on_store(&args.store, 1, async |lab| idle::run(&**lab, &args).await).await?;
            Ok((Shown { json: args.json, samples: false }, figures))
        }
        Bench::Console(args) => {
            let figures = on_store(&args.store, 1, async |lab| console::run(&**lab, &args).await).await?;
            Ok((Shown { json: args.json, samples: false }, figures))
        }
        Bench::Purge(args) => {
            let figures = on_store(&args.store, 1, async |lab| purge::run(&**lab, &args).await).await?;
            Ok((Shown { json: args.json, samples: false }, figures))
        }
        Bench::Overhead(args) => Ok((args.shown, overhead::run(&args).await?)),
    }
}

/// Runs a bench with a load of `events`.
async fn on<T: Args>(
    args: &Measure<T>,
    events: u32,
    writers: u16,
    bench: impl AsyncFnOnce(&Arc<dyn BenchDb>, Load) -> Result<Figures, Failure>,
) -> Result<(Shown, Figures), Failure> {
    let load = Load::new(events, args.payload);
    Ok((args.shown, on_store(&args.store, writers, async |lab| bench(lab, load).await).await?))
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
