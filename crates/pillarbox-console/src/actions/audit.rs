use std::future::Future;
use std::time::Duration;

use pillarbox_core::store::AuditedAction;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::pages::answer;
use crate::problem::Problem;
use crate::source::Source;
use crate::view::View;

/// The interval at which a long change says how far it is, so that a process which dies leaves a number behind.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// The entry of a change in the audit table: made before anything changes, and ended with the outcome.
pub(super) struct Audit {
    source: Source,
    entry: i64,
}

impl Audit {
    /// Records the action before it is done, with the operator. Nothing may change if that fails.
    pub(super) async fn begin(view: &View, action: &'static str, subject: &str) -> Result<Self, Problem> {
        let (who, source) = (&view.user.name, view.source.clone());
        let entry = answer(view.store()?.record_action(&AuditedAction::new(who, action, subject))).await?;
        let source_name = source.name();
        tracing::info!(source = source_name, who, action, subject, "an operator makes a change by the console");
        Ok(Self { source, entry })
    }

    /// Makes a change, and notes meanwhile how many rows `so_far` counts.
    pub(super) async fn noted<T>(&self, change: impl Future<Output = T>, so_far: impl Fn() -> u64) -> T {
        noted(change, || {
            let rows = so_far();
            async move {
                if let Ok(store) = self.source.store() {
                    // The next note, or the end, has a number as well.
                    let _ = store.end_action(self.entry, Some(rows), "has not ended").await;
                }
            }
        })
        .await
    }

    /// Adds that it was refused, and nothing changed.
    pub(super) async fn refused(self, rows: Option<u64>, why: &str) {
        self.end(rows, &Err::<(), _>(format!("refused: {why}"))).await;
    }

    /// Adds the outcome, with the number of rows that were changed if it is known.
    pub(super) async fn end<T>(self, rows: Option<u64>, outcome: &Result<T, String>) {
        let Self { source, entry } = self;
        let outcome = match outcome {
            Ok(_) => "done",
            Err(problem) => &**problem,
        };
        let Ok(store) = source.store() else { return };
        if let Err(error) = store.end_action(entry, rows, outcome).await {
            // The entry says that the change has begun, and the log how it ended.
            let (source, problem) = (source.name(), error.to_string());
            tracing::warn!(
                source,
                entry,
                rows,
                outcome,
                problem,
                "the end of a change could not be recorded in the audit"
            );
        }
    }
}

/// Runs `work` with `note` beside it, which is called again and again and never cut off: what a note had begun could come after the end.
async fn noted<T, N: Future<Output = ()>>(work: impl Future<Output = T>, note: impl Fn() -> N) -> T {
    let (running, mut ended) = oneshot::channel::<()>();
    let work = async {
        let done = work.await;
        drop(running);
        done
    };
    let notes = async {
        while timeout(NOTED_EVERY, &mut ended).await.is_err() {
            note().await;
        }
    };
    tokio::join!(work, notes).0
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_change_is_noted_and_a_note_is_seen_through() {
        let seen = RefCell::new(Vec::new());
        let work = async {
            sleep(Duration::from_millis(2_500)).await;
            seen.borrow_mut().push("changed");
        };
        noted(work, || async {
            seen.borrow_mut().push("begins");
            sleep(Duration::from_millis(700)).await;
            seen.borrow_mut().push("noted");
        })
        .await;
        assert_eq!(*seen.borrow(), ["begins", "noted", "changed"]);
        seen.borrow_mut().clear();
        noted(sleep(Duration::from_millis(1_200)), || async {
            seen.borrow_mut().push("begins");
            sleep(Duration::from_millis(700)).await;
            seen.borrow_mut().push("noted");
        })
        .await;
        assert_eq!(*seen.borrow(), ["begins", "noted"], "though the change ended before it");
        noted(async {}, || async { seen.borrow_mut().push("a short one is noted") }).await;
        assert_eq!(seen.borrow().len(), 2);
    }
}
