//! `bench all`: every bench in turn, and a page that says how it went.

mod child;
mod machine;
mod markdown;
mod plan;
mod plot;
mod plots;
mod run;
mod targets;

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::lab;
use crate::address::Address;
use crate::args::AllArgs;
use crate::failure::Failure;
use crate::report::{note, print_either};
use machine::Machine;
use plan::{Entry, Size};
use run::Run;

/// What is written to the folder. As JSON its keys are a contract.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    quick: bool,
    /// How many benches there are to run: more than were, until the last.
    planned: usize,
    benches: Vec<Run>,
    cliffs: Vec<Run>,
}

/// Runs all benches and writes the report. A bench that fails does not keep the others from running; it makes the exit
/// code 1.
pub(crate) async fn run(args: &AllArgs) -> Result<ExitCode, Failure> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let lab = lab::open(&args.store, 1).await?;
    let machine = Machine::look(&*lab).await;
    lab.store().close().await;
    std::fs::create_dir_all(&args.report).map_err(unwritable(&args.report))?;
    let (benches, cliffs) = (plan::benches(size), plan::cliffs(size, &Address::parse(&args.store)?));
    let mut left = benches.len() + cliffs.len();
    let mut report =
        Report { machine: machine?, quick: args.quick, planned: left, benches: Vec::new(), cliffs: Vec::new() };
    // It takes long, and whoever ends it early has what was measured until then: so all is written after every bench.
    for entry in &benches {
        left -= 1;
        report.benches.push(run_one(entry, &args.store, left).await);
        report.write(&args.report)?;
    }
    for entry in &cliffs {
        left -= 1;
        report.cliffs.push(run_one(entry, &args.store, left).await);
        report.write(&args.report)?;
    }
    print_either(args.json, &report, || report.summary(&args.report))?;
    Ok(if report.problems() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run_one(entry: &Entry, store: &str, left: usize) -> Run {
    note(&format!("bench {} ({left} more after it)", entry.arguments));
    let run = child::run(entry, store).await;
    if let Some(problem) = run.problem() {
        note(&format!("  {}: {problem}", entry.name));
    }
    run
}

impl Report {
    fn problems(&self) -> usize {
        self.benches.iter().chain(&self.cliffs).filter(|run| run.problem().is_some()).count()
    }

    /// Writes its files and touches no others.
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            std::fs::write(&path, text).map_err(unwritable(&path))
        };
        for picture in plots::all(&self.benches)? {
            write(picture.file, &picture.svg)?;
        }
        write("report.json", &serde_json::to_string_pretty(self)?)?;
        write("report.md", &markdown::page(self))
    }

    fn summary(&self, folder: &Path) -> String {
        let benches = self.benches.len() + self.cliffs.len();
        let page = folder.join("report.md");
        let (page, failed) = (page.display(), self.problems());
        format!("{benches} benches, {failed} of them with a problem; the report is in {page}")
    }
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |source| Failure::Unreportable { path, source }
}
