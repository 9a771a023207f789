use std::process::ExitCode;

use pillarbox::maintain::{PendingEvent, PendingEvents, PendingFilter};
use serde::Serialize;

use crate::args::{PendingMatching, Target};
use crate::failure::Failure;
use crate::store;
use pillarbox_program::report::{self, grouped, or_dash, plain};

/// Lists a page of the events that still have to be delivered.
pub(crate) async fn run(
    target: &Target,
    matching: PendingMatching,
    limit: usize,
    after: Option<i64>,
    wide: bool,
) -> Result<ExitCode, Failure> {
    let filter = PendingFilter::from(matching);
    let read = store::on(target, async |store| {
        let pending = PendingEvents::of(store);
        // One more than is shown tells whether there is another page.
        Ok((pending.list(&filter, after, limit + 1).await?, pending.count(&filter).await?))
    });
    let (mut events, matching) = read.await?;
    let more = events.len() > limit;
    events.truncate(limit);
    let page = Page { next: events.last().filter(|_| more).map(|last| last.seq), events, matching, wide };
    report::print_either(target.json, &page.json(), || page.text())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug)]
struct Page {
    events: Vec<PendingEvent>,
    /// The number of events on all pages.
    matching: u64,
    /// The `--after` of the next page; `None` if this is the last one.
    next: Option<i64>,
    /// True if errors are shown whole.
    wide: bool,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    events: Vec<Event<'a>>,
    matching: u64,
    next: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Event<'a> {
    seq: i64,
    event_id: &'a str,
    event_type: &'a str,
    aggregate_type: &'a str,
    aggregate_id: Option<&'a str>,
    tenant_id: Option<&'a str>,
    key: Option<&'a str>,
    handler: Option<&'a str>,
    state: &'static str,
    attempts: i32,
    last_error: Option<&'a str>,
    created_at: String,
    due_at: Option<String>,
    held_by: Option<&'a str>,
}

impl<'a> From<&'a PendingEvent> for Event<'a> {
    fn from(event: &'a PendingEvent) -> Self {
        Self {
            seq: event.seq,
            event_id: &event.event_id,
            event_type: &event.event_type,
            aggregate_type: &event.aggregate_type,
            aggregate_id: event.aggregate_id.as_deref(),
            tenant_id: event.tenant_id.as_deref(),
            key: event.key.as_deref(),
            handler: event.handler.as_deref(),
            state: event.state.name(),
            attempts: event.attempts,
            last_error: event.last_error.as_deref(),
            created_at: event.created_at.to_string(),
            due_at: event.due_at.map(|time| time.to_string()),
            held_by: event.held_by.as_deref(),
        }
    }
}

impl Page {
    fn json(&self) -> Json<'_> {
        Json { events: self.events.iter().map(Event::from).collect(), matching: self.matching, next: self.next }
    }

    fn text(&self) -> String {
        if self.events.is_empty() {
            return match self.matching {
                0 => "No pending event matches.".to_owned(),
                1 => "The one event that matches is not behind --after.".to_owned(),
                all => format!("None of the {} events that match is behind --after.", grouped(all)),
            };
        }
        let columns = self.columns();
        let heading: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let row = |event| columns.iter().map(|(_, cell)| cell(event, self.wide)).collect::<Vec<_>>();
        let shown = grouped(self.events.len() as u64);
        let more = self.next.map(|seq| format!("; more with --after {seq}")).unwrap_or_default();
        let table = report::listing(heading, self.events.iter().map(row)).trim_fmt();
        format!("{table}\n\n{shown} of {}{more}", grouped(self.matching))
    }

    /// The columns to show: keys, handlers and holders only if there are any.
    fn columns(&self) -> Vec<Column> {
        let shown = |(name, _): &Column| match *name {
            "KEY" => self.events.iter().any(|event| event.key.is_some()),
            "HANDLER" => self.events.iter().any(|event| event.handler.is_some()),
            "HELD BY" => self.events.iter().any(|event| event.held_by.is_some()),
            _ => true,
        };
        COLUMNS.into_iter().filter(shown).collect()
    }
}

/// A heading, and the text of a cell below it, whole or not.
type Column = (&'static str, fn(&PendingEvent, bool) -> String);

const COLUMNS: [Column; 12] = [
    ("SEQ", |event, _| event.seq.to_string()),
    ("EVENT ID", |event, _| plain(&event.event_id)),
    ("TYPE", |event, _| plain(&event.event_type)),
    ("AGGREGATE", |event, _| {
        let kind = plain(&event.aggregate_type);
        event.aggregate_id.as_deref().map_or_else(|| kind.clone(), |id| format!("{kind}/{}", plain(id)))
    }),
    ("KEY", |event, _| or_dash(event.key.as_deref())),
    ("HANDLER", |event, _| or_dash(event.handler.as_deref())),
    ("TENANT", |event, _| or_dash(event.tenant_id.as_deref())),
    ("STATE", |event, _| event.state.name().to_owned()),
    ("ATTEMPTS", |event, _| event.attempts.to_string()),
    ("DUE", |event, _| event.due_at.map_or_else(|| "-".to_owned(), |time| time.to_string())),
    ("HELD BY", |event, _| or_dash(event.held_by.as_deref())),
    ("ERROR", |event, wide| report::error(event.last_error.as_deref(), wide)),
];
