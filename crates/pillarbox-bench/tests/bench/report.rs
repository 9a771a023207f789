//! `bench all` runs every bench by its own command line and writes a page about it, whatever becomes of them.

use std::fs;
use std::path::Path;

use crate::support::{Ended, bench, end_of, execute, keys, run, send};
use serde_json::Value;

const FILES: [&str; 8] = [
    "backlog.svg",
    "dead_tuples.svg",
    "latency.svg",
    "report.json",
    "report.md",
    "statements.svg",
    "throughput.svg",
    "wal.svg",
];

fn report_on(store: &Path, folder: &Path) -> Ended {
    let (store, folder) = (store.to_str().unwrap(), folder.to_str().unwrap());
    run(&["all", "--store", store, "--report", folder, "--quick"])
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// All runs of a report.
fn runs(folder: &Path) -> Vec<Value> {
    let report: Value = serde_json::from_str(&read(folder, "report.json")).unwrap();
    assert_eq!(keys(&report), ["benches", "cliffs", "counted", "machine", "planned", "quick"]);
    let runs = ["benches", "cliffs"].map(|part| report[part].as_array().unwrap().clone());
    runs.concat()
}

#[test]
fn every_bench_is_run_and_reported() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("some/report");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(folder.join("report.md"), "of last year").unwrap();

    let ended = report_on(&temporary.path().join("bench.db"), &folder);
    let runs = runs(&folder);
    for run in &runs {
        assert_eq!(keys(run), ["command", "figures", "name"], "{run}");
        assert!(run["figures"]["seconds"].is_f64(), "{run}");
    }
    // A machine that is busy may not keep a pace; nothing else may go wrong.
    let broken = runs.iter().filter(|run| run["figures"]["verdicts"].to_string().contains("\"held\":false")).count();
    assert_eq!(ended.code, Some(i32::from(broken > 0)), "{ended:?}");
    let summary = format!("{} benches, {broken} of them with a problem; the report is in ", runs.len());
    assert!(ended.stdout.starts_with(&summary), "{ended:?}");

    let files: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(files.iter().all(|file| FILES.contains(&&**file) || file == "notes.txt"), "{files:?}");
    for file in ["report.md", "report.json", "latency.svg", "backlog.svg"] {
        assert!(files.iter().any(|other| other == file), "{file} is missing: {files:?}");
    }
    assert!(!files.contains(&"statements.svg".to_owned()), "SQLite counts none: {files:?}");
    assert_eq!(read(&folder, "notes.txt"), "mine", "what is not ours is left alone");

    let page = read(&folder, "report.md");
    for text in [
        "SQLite | 3.",
        "drain beside a naive loop",
        "latency, another node",
        "pillarbox bench drain --mode partitioned",
        "--quick",
    ] {
        assert!(page.contains(text), "{text:?} is missing: {page}");
    }
    for file in files.iter().filter(|file| file.ends_with(".svg")) {
        let svg = read(&folder, file);
        assert!(roxmltree::Document::parse(&svg).is_ok(), "{file}: {svg}");
        assert!(page.contains(&format!("]({file})")), "{file} is not shown");
    }
}

#[tokio::test]
async fn benches_that_fail_are_reported_and_make_the_exit_code() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("bench.db");
    // No bench that needs the database can drop and create its tables.
    execute_in_new(&file, "CREATE VIEW pillarbox_bench_yardstick AS SELECT 1").await;
    let ended = report_on(&file, temporary.path());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let runs = runs(temporary.path());
    let failed = runs.iter().filter(|run| run["failure"].as_str().is_some_and(|reason| reason.contains("yardstick")));
    let failed = failed.count();
    assert!(failed > 1, "the first did not stop the others: {runs:?}");
    assert!(ended.stdout.contains(&format!(" {failed} of them with a problem")), "{ended:?}");
    assert!(read(temporary.path(), "report.md").contains("| drain partitioned | could not create the yardstick"));
}

async fn execute_in_new(file: &Path, sql: &str) {
    fs::write(file, "").unwrap();
    execute(file.to_str().unwrap(), sql).await;
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_is_run() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "mine").unwrap();
    let ended = report_on(&temporary.path().join("bench.db"), &file);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.starts_with("error: --report: could not write"), "{ended:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

/// The bench that runs at that moment would go on by itself otherwise, and load a database that nobody measures.
#[tokio::test]
async fn a_signal_ends_the_bench_that_runs_too() {
    let temporary = tempfile::tempdir().unwrap();
    let (file, folder) = (temporary.path().join("bench.db"), temporary.path().join("report"));
    let (store, report) = (file.to_str().unwrap(), folder.to_str().unwrap());
    let all = bench(&["all", "--store", store, "--report", report]).spawn().unwrap();
    let child = loop {
        // Threads start processes too, and each has a list of its own.
        let of_threads = fs::read_dir(format!("/proc/{}/task", all.id())).unwrap();
        let lists = of_threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let child = lists.filter_map(|list| list.split_whitespace().next()?.parse::<u32>().ok()).next();
        if let Some(child) = child {
            break child;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    send("-TERM", &all);
    let ended = end_of(all).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("error: stopped by a signal"), "{ended:?}");
    let command = || fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while command().contains("bench") && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!command().contains("bench"), "its child runs on");
}

#[test]
fn a_store_that_is_none_is_refused() {
    let ended = report_on(Path::new("oracle://me:s3cret@host/db"), Path::new("report"));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("not supported") && !ended.stderr.contains("s3cret"), "{ended:?}");
}
