//! Running many seeds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::engine::activate;
use crate::{Run, simulate};

/// The result of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The first that violated an invariant.
    pub violated: Option<Run>,
    /// The hash of all their hashes.
    pub hash: u64,
}

/// Runs the seeds in a range, by so many threads, until one violates an invariant, with a bug planted or without.
///
/// # Errors
/// The operating system's.
pub fn run(first: u64, count: u64, jobs: usize, planted: Option<&'static str>) -> std::io::Result<Summary> {
    let next = AtomicU64::new(0);
    // Seeds from here on need not be run.
    let end = AtomicU64::new(count);
    let runs: Mutex<BTreeMap<u64, std::io::Result<Run>>> = Mutex::default();
    let work = || {
        activate(planted);
        loop {
            let index = next.fetch_add(1, Relaxed);
            if index >= end.load(Relaxed) {
                break;
            }
            let run = simulate(first + index, false);
            if run.as_ref().map_or(true, |run| run.end.violation.is_some()) {
                end.fetch_min(index + 1, Relaxed);
            }
            runs.lock().unwrap_or_else(PoisonError::into_inner).insert(index, run);
        }
        activate(None);
    };
    if jobs <= 1 {
        work();
    } else {
        thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    }
    let mut summary = Summary::default();
    for run in runs.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
        let run = run?;
        summary.seeds += 1;
        summary.hash = summary.hash.rotate_left(7) ^ run.hash;
        if run.end.violation.is_some() {
            summary.violated = Some(run);
            break;
        }
    }
    Ok(summary)
}
