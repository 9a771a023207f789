use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pillarbox_core::clock::Timestamp;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::OperatorAction;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Changes of many events at once.
const MOST: usize = 4;
/// Changes that have ended and can still be looked at.
const KEPT: usize = 50;

/// The tasks of a console, which end with it, and the changes among them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: Mutex<VecDeque<Arc<Job>>>,
    last: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

/// A change of many events.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) source: String,
    pub(crate) action: OperatorAction,
    /// In words.
    pub(crate) filter: String,
    pub(crate) who: String,
    pub(crate) began: Timestamp,
    /// The number of rows that matched before.
    pub(crate) expected: u64,
    changed: AtomicU64,
    ended: OnceLock<Result<u64, String>>,
}

impl Job {
    pub(crate) fn new(
        source: &str,
        action: OperatorAction,
        filter: String,
        who: &str,
        began: Timestamp,
        expected: u64,
    ) -> Self {
        let (source, who) = (source.to_owned(), who.to_owned());
        Self { id: 0, source, action, filter, who, began, expected, changed: AtomicU64::new(0), ended: OnceLock::new() }
    }

    /// Rows changed so far.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    pub(crate) fn progress(&self, so_far: u64) {
        self.changed.store(so_far, Ordering::Relaxed);
    }

    /// The end: the rows changed, or the problem.
    pub(crate) fn ended(&self) -> Option<Result<u64, String>> {
        self.ended.get().cloned()
    }

    pub(crate) fn end(&self, outcome: Result<u64, String>) {
        if let Ok(rows) = outcome {
            self.progress(rows);
        }
        self.ended.get_or_init(|| outcome);
    }
}

impl Jobs {
    /// Adds a change; `None` if as many run as may.
    pub(crate) fn add(&self, job: Job) -> Option<Arc<Job>> {
        let mut all = self.all.lock();
        if all.iter().filter(|job| job.ended().is_none()).count() >= MOST {
            return None;
        }
        let job = Arc::new(Job { id: self.last.fetch_add(1, Ordering::Relaxed) + 1, ..job });
        all.push_back(Arc::clone(&job));
        if all.len() > KEPT
            && let Some(first) = all.iter().position(|job| job.ended().is_some())
        {
            all.remove(first);
        }
        Some(job)
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Job>> {
        self.all.lock().iter().find(|job| job.id == id).cloned()
    }

    /// Completes the work, even if its caller stops waiting; `None` if the console ends first.
    pub(crate) async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (told, done) = oneshot::channel();
        self.run(async move {
            // Nobody may listen any more.
            let _ = told.send(work.await);
        });
        done.await.ok()
    }

    /// Runs until it ends, or the console does.
    pub(crate) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job::new("shop", OperatorAction::Replay, String::new(), "ada", Timestamp::from_micros(0), 7)
    }

    #[test]
    fn few_run_at_once_and_old_ones_are_forgotten() {
        let jobs = Jobs::default();
        let running: Vec<_> = (0..MOST).map(|_| jobs.add(job()).expect("runs")).collect();
        assert!(jobs.add(job()).is_none());
        running[0].end(Ok(7));
        for _ in 0..KEPT {
            jobs.add(job()).expect("there is room").end(Err("lost".to_owned()));
        }
        assert_eq!(jobs.all.lock().len(), KEPT);
        assert!(jobs.find(running[0].id).is_none() && jobs.find(running[1].id).is_some());
    }
}
