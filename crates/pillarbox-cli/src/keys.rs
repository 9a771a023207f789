//! The keys that are blocked by a failing event.

use std::process::ExitCode;

use pillarbox::maintain::{Blocked, EventState, FIRST_PAGE};
use serde::Serialize;

use crate::args::{Keys, Target};
use crate::failure::Failure;
use crate::{duration, store};
use pillarbox_program::report::{self, counted, grouped, or_dash, plain, rounded};

/// Lists a page of blocked keys.
pub(crate) async fn run(keys: Keys) -> Result<ExitCode, Failure> {
    let Keys::Blocked { target, limit, after, wide } = keys;
    let limit = usize::from(limit);
    // One more than is shown tells whether there is another page.
    let read = store::on(&target, async |store| Ok(store.blocked(after.unwrap_or(FIRST_PAGE), limit + 1).await?));
    let mut keys = read.await?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    let page = Page { next: keys.last().filter(|_| more).map(|last| last.seq), keys, after, wide };
    report::print_either(target.json, &page.json(), || page.text(&target))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug)]
struct Page {
    keys: Vec<Blocked>,
    /// The `--after` of the next page; `None` if this is the last one.
    next: Option<i64>,
    /// The `--after` of this page.
    after: Option<i64>,
    /// True if errors are shown whole.
    wide: bool,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    keys: Vec<Key<'a>>,
    next: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Key<'a> {
    key: &'a str,
    handler: Option<&'a str>,
    event_id: &'a str,
    event_type: &'a str,
    seq: i64,
    state: &'static str,
    attempts: i32,
    /// Null if it is DEAD, or due.
    due_in_seconds: Option<f64>,
    waiting: u64,
    last_error: Option<&'a str>,
}

impl<'a> From<&'a Blocked> for Key<'a> {
    fn from(blocked: &'a Blocked) -> Self {
        Self {
            key: &blocked.key,
            handler: blocked.handler.as_deref(),
            event_id: &blocked.event_id,
            event_type: &blocked.event_type,
            seq: blocked.seq,
            state: state(blocked),
            attempts: blocked.attempts,
            due_in_seconds: blocked.due_in.map(|due| rounded(due.as_secs_f64(), 3)),
            waiting: blocked.waiting,
            last_error: blocked.last_error.as_deref(),
        }
    }
}

fn state(blocked: &Blocked) -> &'static str {
    if blocked.dead { EventState::Dead.name() } else { EventState::Retrying.name() }
}

impl Page {
    fn json(&self) -> Json<'_> {
        Json { keys: self.keys.iter().map(Key::from).collect(), next: self.next }
    }

    fn text(&self, target: &Target) -> String {
        if self.keys.is_empty() {
            let behind = if self.after.is_some() { " behind --after" } else { "" };
            return format!("No key waits for an event that failed{behind}.");
        }
        let rows = self.keys.iter().map(|blocked| {
            [
                plain(&blocked.key),
                or_dash(blocked.handler.as_deref()),
                plain(&blocked.event_id),
                blocked.seq.to_string(),
                state(blocked).to_owned(),
                blocked.attempts.to_string(),
                due(blocked),
                waiting(blocked.waiting),
                report::error(blocked.last_error.as_deref(), self.wide),
            ]
        });
        let heading = ["KEY", "HANDLER", "EVENT ID", "SEQ", "STATE", "ATTEMPTS", "DUE IN", "WAITING", "ERROR"];
        let table = report::listing(heading, rows).trim_fmt();
        let shown = counted(self.keys.len() as u64, "key");
        let more = self.next.map(|seq| format!("; more with --after {seq}")).unwrap_or_default();
        format!("{table}\n\n{shown}{more}{}", self.hint(target))
    }

    /// The commands for the first DEAD event, or a note that there is none.
    fn hint(&self, target: &Target) -> String {
        let Some(dead) = self.keys.iter().find(|blocked| blocked.dead) else {
            return "\nEach goes on by itself once its next attempt succeeds.".to_owned();
        };
        let (id, handler) = (plain(&dead.event_id), dead.handler.as_deref().map(plain));
        let command = |verb: &str| {
            let handler = handler.iter().flat_map(|handler| ["--handler", handler.as_str()]);
            target.command(&["dead", verb, &id].into_iter().chain(handler).collect::<Vec<_>>())
        };
        format!(
            "\nA DEAD one waits for you. What there is to know of it, to try it again, and to let the others go on without it:\
             \n  {}\n  {}\n  {}",
            command("show"),
            command("replay"),
            command("discard"),
        )
    }
}

fn due(blocked: &Blocked) -> String {
    match blocked.due_in {
        Some(due) => duration::human(due),
        None if blocked.dead => "-".to_owned(),
        None => "now".to_owned(),
    }
}

fn waiting(events: u64) -> String {
    let more = if events < Blocked::COUNTED_UP_TO { "" } else { "+" };
    format!("{}{more}", grouped(events))
}
