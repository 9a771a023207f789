//! `bench all`: every bench in turn, and a report of the results.

mod child;
mod machine;
mod markdown;
mod plan;
pub(crate) mod plot;
mod plots;
mod run;
mod targets;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use serde::Serialize;

use super::lab::{self, Counted};
use crate::args::AllArgs;
use crate::failure::Failure;
use machine::Machine;
use pillarbox_program::address::Address;
use pillarbox_program::report::{note, print_either};
use pillarbox_program::signals::Signals;
use plan::{Entry, Size};
use run::Run;

/// The content of the report. As JSON its keys are a contract.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    /// The unit that the database counts.
    counted: Counted,
    quick: bool,
    /// The number of benches to run: more than have run, until the last.
    planned: usize,
    benches: Vec<Run>,
    cliffs: Vec<Run>,
}

/// Runs all benches and writes the report. A bench that fails does not keep the others from running; it makes the exit
/// code 1.
pub(crate) async fn run(args: &AllArgs) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::of_system("listen for signals"))?;
    tokio::select! {
        ran = run_all(args) => ran,
        // This kills the bench that runs: its result would be lost, and its load would go on.
        () = signals.next() => Err(Failure::Stopped),
    }
}

async fn run_all(args: &AllArgs) -> Result<ExitCode, Failure> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let lab = lab::open(&args.store, 1).await?;
    let (machine, counted) = (Machine::look(&*lab).await, lab.about().counted);
    lab.close().await;
    fs::create_dir_all(&args.report).map_err(Failure::unwritable("--report", &args.report))?;
    let (benches, cliffs) = (plan::benches(size), plan::cliffs(size, &Address::parse(&args.store)?));
    let mut report = Report {
        machine: machine?,
        counted,
        quick: args.quick,
        planned: benches.len() + cliffs.len(),
        benches: Vec::new(),
        cliffs: Vec::new(),
    };
    // All benches take long, so the report is written after each of them: an early end keeps the results so far.
    for (before, entry) in benches.iter().chain(&cliffs).enumerate() {
        let run = run_one(entry, &args.store, report.planned - before - 1).await;
        let runs = if before < benches.len() { &mut report.benches } else { &mut report.cliffs };
        runs.push(run);
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
            replace(&path, text).map_err(Failure::unwritable("--report", &path))
        };
        for picture in plots::all(&self.benches, self.counted)? {
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

/// Writes a file whole or not at all: a full disk leaves the old file as it was.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_added_extension("part");
    let write = || {
        let mut file = fs::File::create(&part)?;
        file.write_all(text.as_bytes())?;
        // Some file systems notice only now that there is no room.
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().inspect_err(|_| {
        // If even this fails, there is nothing left to do.
        drop(fs::remove_file(&part));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_or_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.md");
        for text in ["first", "second"] {
            replace(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["report.md"]);

        // As on a full disk: the text cannot be written, or the file cannot be replaced.
        std::os::unix::fs::symlink("/dev/full", folder.path().join("report.md.part")).unwrap();
        assert!(replace(&path, "third").is_err());
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(folder.path())),
            ("second".to_owned(), vec!["report.md".to_owned()])
        );
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("file"), "mine").unwrap();
        assert!(replace(&taken, "a file cannot replace a folder").is_err());
        assert_eq!(names(folder.path()), ["report.md", "taken"]);
    }
}
