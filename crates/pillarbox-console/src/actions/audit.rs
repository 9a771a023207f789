use pillarbox_core::store::AuditedAction;

use crate::pages::answer;
use crate::problem::Problem;
use crate::source::Source;
use crate::view::View;

/// The entry of a change in the audit table: made before anything changes, and ended with the outcome.
pub(super) struct Audit {
    source: Source,
    entry: i64,
}

impl Audit {
    /// Records who is about to do what. Nothing may change if that fails.
    pub(super) async fn begin(view: &View, action: &'static str, subject: &str) -> Result<Self, Problem> {
        let (who, source) = (&view.user.name, view.source.clone());
        let entry = answer(view.store()?.record_action(&AuditedAction::new(who, action, subject))).await?;
        let source_name = source.name();
        tracing::info!(source = source_name, who, action, subject, "an operator makes a change by the console");
        Ok(Self { source, entry })
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
