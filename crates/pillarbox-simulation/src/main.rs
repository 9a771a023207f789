//! Runs worlds of the simulation; see the README of this crate.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that tells what it finds")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;
use tokio::time::Instant;

use pillarbox_simulation::engine::{HOOKED, activate};
use pillarbox_simulation::planted_bugs::{PLANTED_BUGS, find};
use pillarbox_simulation::{seeds, simulate};

/// Every seed that ever failed, one a line, with what was wrong.
const SEEDS: &str = include_str!("../seeds");
/// The seeds that find the planted bugs which take many, one a line behind the bug's name.
const PLANT_SEEDS: &str = include_str!("../plant-seeds");
/// Each planted bug is found within so many seeds.
const MOST_SEEDS: u64 = 20_000;
const FRESH_IN_CI: u64 = 2_000;
/// Seeds that are run again in another process.
const REPLAYED: u64 = 100;

/// Runs worlds of the simulation, each from one seed. It ends with 1 if an invariant was violated.
#[derive(Debug, Parser)]
#[command(bin_name = "scripts/simulate", arg_required_else_help = true)]
struct Options {
    /// Run so many seeds, fresh ones without --from.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first of the seeds.
    #[arg(long, value_name = "S")]
    from: Option<u64>,
    /// Run one seed.
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Tell the story of the one seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// List the planted bugs.
    #[arg(long)]
    plants: bool,
    /// Plant a bug; --seeds begins with 0 then.
    #[arg(long, value_name = "NAME", value_parser = planted)]
    plant: Option<&'static str>,
    /// Run fresh seeds, all that ever failed and each planted bug, and check that seeds replay.
    #[arg(long)]
    ci: bool,
    /// Write one line for programs.
    #[arg(long)]
    json: bool,
    /// Run by so many threads.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match Options::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn planted(name: &str) -> Result<&'static str, String> {
    find(name).map(|(known, _)| *known).ok_or_else(|| format!("there is no planted bug {name:?}; see --plants"))
}

impl Options {
    /// Does what was asked for; false if an invariant was violated.
    fn run(&self) -> Result<bool, Failure> {
        if self.plants {
            PLANTED_BUGS.iter().for_each(|(name, what)| println!("{name:40} {what}"));
            return Ok(true);
        }
        if !HOOKED {
            return Err(
                "this was built without the hooks of the engine; run scripts/simulate, which builds it with them"
                    .into(),
            );
        }
        // Handlers panic on purpose.
        std::panic::set_hook(Box::new(|_| {}));
        match self.seed {
            _ if self.ci => ci(self.jobs.get()),
            Some(seed) => self.one(seed),
            None => self.many(),
        }
    }

    fn one(&self, seed: u64) -> Result<bool, Failure> {
        activate(self.plant);
        let began = Instant::now();
        let run = simulate(seed, self.trace)?;
        if self.trace {
            println!("{}", run.plan);
            run.lines.iter().for_each(|line| println!("{line}"));
        }
        if let Some(violation) = &run.end.violation {
            println!("seed {seed}: {violation}");
        }
        let violations = u64::from(run.end.violation.is_some());
        self.tell(1, violations, began, run.hash);
        Ok(violations == 0)
    }

    fn many(&self) -> Result<bool, Failure> {
        let count = self.seeds.ok_or("say how many --seeds")?;
        let first = self.from.unwrap_or_else(|| if self.plant.is_some() { 0 } else { fresh() });
        let began = Instant::now();
        let summary = seeds::run(first, count, self.jobs.get(), self.plant)?;
        let violations = u64::from(summary.violated.is_some());
        self.tell(summary.seeds, violations, began, summary.hash);
        if let Some(run) = &summary.violated {
            report(run, self.plant);
        }
        Ok(violations == 0)
    }

    fn tell(&self, seeds: u64, violations: u64, began: Instant, hash: u64) {
        let rate = rate(seeds, began);
        if self.json {
            println!(
                r#"{{"seeds":{seeds},"violations":{violations},"seeds_per_s":{rate:.1},"trace_hash":"{hash:016x}"}}"#
            );
        } else {
            println!("{seeds} seeds, {violations} violations, {rate:.0} seeds/s, trace hash {hash:016x}");
        }
    }
}

/// Names what was violated, and the command that repeats it.
fn report(run: &pillarbox_simulation::Run, plant: Option<&str>) {
    let planted = plant.map(|name| format!(" --plant {name}")).unwrap_or_default();
    if let Some(violation) = &run.end.violation {
        eprintln!(
            "seed {}: {violation}\nrepeat it with: scripts/simulate --seed {} --trace{planted}",
            run.seed, run.seed
        );
    }
}

/// Everything a change has to pass.
fn ci(jobs: usize) -> Result<bool, Failure> {
    let mut good = true;
    let known = known_seeds()?;
    for seed in failed_seeds()? {
        let (run, again) = (simulate(seed, false)?, simulate(seed, false)?);
        if run.end.violation.is_some() {
            report(&run, None);
            good = false;
        }
        if run.hash != again.hash {
            eprintln!("seed {seed} does not replay: {:016x} and {:016x}", run.hash, again.hash);
            good = false;
        }
    }
    println!("the seeds that ever failed: {}", if good { "no violation" } else { "VIOLATED" });
    let began = Instant::now();
    for (name, _) in PLANTED_BUGS {
        let known = known.get(name);
        let mut summary = match known {
            Some(seed) => seeds::run(*seed, 1, 1, Some(name))?,
            None => seeds::Summary::default(),
        };
        if summary.violated.is_none() {
            summary = seeds::run(0, MOST_SEEDS, jobs, Some(name))?;
            if let (Some(known), Some(run)) = (known, &summary.violated) {
                println!("note: seed {known} does not find {name} any more; write {} to plant-seeds", run.seed);
            }
        }
        match &summary.violated {
            Some(run) => {
                let invariant = run.end.violation.as_ref().map_or("", |violation| violation.invariant);
                println!("planted bug {name:40} found by seed {:5} ({invariant})", run.seed);
                // Otherwise it is not the planted bug that was found.
                let without = simulate(run.seed, false)?;
                if without.end.violation.is_some() {
                    report(&without, None);
                    good = false;
                }
            }
            None => {
                eprintln!("planted bug {name} was not found within {MOST_SEEDS} seeds");
                good = false;
            }
        }
    }
    println!("{} planted bugs in {:.0} s", PLANTED_BUGS.len(), began.elapsed().as_secs_f64());
    let (began, first) = (Instant::now(), fresh());
    println!("{FRESH_IN_CI} fresh seeds from {first}");
    let summary = seeds::run(first, FRESH_IN_CI, jobs, None)?;
    let violations = u64::from(summary.violated.is_some());
    println!("{} fresh seeds, {violations} violations, {:.0} seeds/s", summary.seeds, rate(summary.seeds, began));
    if let Some(run) = &summary.violated {
        report(run, None);
        good = false;
    }
    if !replays_in_another_process(first)? {
        eprintln!("seeds {first} to {} do not replay in another process", first + REPLAYED - 1);
        good = false;
    }
    Ok(good)
}

/// The lines of a list that are neither empty nor comments.
fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// The seeds that ever failed.
fn failed_seeds() -> Result<Vec<u64>, Failure> {
    let seed = |line: &str| {
        let seed = line.split_whitespace().next().and_then(|seed| seed.parse().ok());
        seed.ok_or_else(|| format!("the line {line:?} of seeds does not begin with a seed").into())
    };
    entries(SEEDS).map(seed).collect()
}

/// The seeds that found planted bugs before, by the names of the bugs.
fn known_seeds() -> Result<BTreeMap<&'static str, u64>, Failure> {
    let entry = |line: &'static str| {
        let (name, seed) = line.split_once(' ')?;
        Some((find(name)?.0, seed.trim().parse().ok()?))
    };
    let known =
        |line| entry(line).ok_or_else(|| format!("the line {line:?} of plant-seeds is no planted bug and seed").into());
    entries(PLANT_SEEDS).map(known).collect()
}

/// Returns true if seeds have the same trace hashes in another process.
fn replays_in_another_process(first: u64) -> Result<bool, Failure> {
    let here = seeds::run(first, REPLAYED, 1, None)?;
    let mut there = std::process::Command::new(std::env::current_exe()?);
    let there = there.args(["--json", "--seeds", &REPLAYED.to_string(), "--from", &first.to_string()]).output()?;
    Ok(String::from_utf8_lossy(&there.stdout).contains(&format!("{:016x}", here.hash)))
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(seeds: u64, began: Instant) -> f64 {
    seeds as f64 / began.elapsed().as_secs_f64().max(1e-9)
}

/// A seed that nobody has run.
fn fresh() -> u64 {
    use std::hash::BuildHasher as _;
    std::hash::RandomState::new().hash_one("seed") >> 24
}
