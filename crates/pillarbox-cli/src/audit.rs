//! The changes of events that operators make, and the list of them.

use std::borrow::Cow;
use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::event::Timestamp;
use pillarbox::maintain::{Attributes, AuditEntry, AuditedAction};
use pillarbox_program::failure::sentence;
use pillarbox_program::report::{self, counted, grouped, or_dash, plain};
use serde::Serialize;

use crate::args::AuditArgs;
use crate::failure::Failure;
use crate::store;

/// The outcome of a change that was made.
pub(crate) const DONE: &str = "done";

/// The outcome of a change that was refused: nothing is changed by it.
pub(crate) fn refused(why: &str) -> String {
    format!("refused: {why}")
}

/// Makes a change between two writes to the audit table: an entry before it, and its outcome after it. `outcome` tells how many rows were
/// changed, where it changes any, and how it ended. A change that fails half-way is recorded with the rows before that.
pub(crate) async fn recorded<T>(
    store: &dyn Store,
    action: &AuditedAction,
    outcome: impl Fn(&T) -> (Option<u64>, Cow<'static, str>),
    change: impl AsyncFnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = store.record_action(action).await?;
    let changed = change().await;
    let ended = match &changed {
        Ok(changed) => {
            let (rows, outcome) = outcome(changed);
            store.end_action(id, rows, &outcome).await
        }
        Err(failure @ Failure::SeveralHandlers { .. }) => {
            store.end_action(id, None, &refused(&sentence(failure))).await
        }
        Err(Failure::Partly { rows, failure, .. }) => store.end_action(id, Some(*rows), &sentence(&**failure)).await,
        Err(failure) => store.end_action(id, None, &sentence(failure)).await,
    };
    if let Err(error) = ended {
        report::note(&format!("warning: the audit table does not say how the action {id} ended: {}", sentence(&error)));
    }
    changed
}

/// The words that say what an action is about, as the console writes them: `type order.placed, tenant acme`.
pub(crate) fn subject<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let given = fields.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    let words = given.collect::<Vec<_>>().join(", ");
    if words.is_empty() { "all".to_owned() } else { words }
}

/// The words about the attributes of events.
pub(crate) fn attributes(of: &Attributes) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let Attributes { event_type, aggregate_type, tenant_id, handler, key } = of.clone();
    [("type", event_type), ("aggregate", aggregate_type), ("tenant", tenant_id), ("handler", handler), ("key", key)]
        .into_iter()
}

/// Lists a page of the actions of operators.
pub(crate) async fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let limit = usize::from(args.limit);
    // One more than is shown tells whether there is another page.
    let read = store::on(&args.target, async |store| Ok(store.actions(args.below, limit + 1).await?));
    let mut entries = read.await?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    let page = Page {
        next: entries.last().filter(|_| more).map(|last| last.id),
        actions: entries.iter().map(Action::from).collect(),
    };
    report::print_either(args.target.json, &page, || page.text())?;
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Page<'a> {
    actions: Vec<Action<'a>>,
    /// The `--below` of the next page; null if this is the last one.
    next: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Action<'a> {
    id: i64,
    began_at: String,
    #[serde(skip)]
    began: Timestamp,
    who: &'a str,
    action: &'a str,
    subject: &'a str,
    changed: Option<u64>,
    /// Null if the action runs, or its process died.
    outcome: Option<&'a str>,
}

impl<'a> From<&'a AuditEntry> for Action<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        Self {
            id: entry.id,
            began_at: entry.began_at.to_string(),
            began: entry.began_at,
            who: &entry.who,
            action: &entry.action,
            subject: &entry.subject,
            changed: entry.changed,
            outcome: entry.outcome.as_deref(),
        }
    }
}

impl Page<'_> {
    fn text(&self) -> String {
        if self.actions.is_empty() {
            return "No action is recorded.".to_owned();
        }
        let rows = self.actions.iter().map(|action| {
            let changed = action.changed.map_or_else(|| "-".to_owned(), grouped);
            let outcome = action.outcome.map_or_else(|| "has not ended".to_owned(), plain);
            let [who, name, subject] = [action.who, action.action, action.subject].map(|text| or_dash(Some(text)));
            [action.id.to_string(), report::time(action.began), who, name, subject, changed, outcome]
        });
        let table = report::listing(["ID", "BEGAN", "WHO", "ACTION", "SUBJECT", "ROWS", "OUTCOME"], rows).trim_fmt();
        let more = self.next.map(|id| format!("; more with --below {id}")).unwrap_or_default();
        format!("{table}\n\n{}{more}", counted(self.actions.len() as u64, "action"))
    }
}
