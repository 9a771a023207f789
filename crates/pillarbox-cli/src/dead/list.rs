use std::process::ExitCode;

use pillarbox::maintain::DeadEvents;
use pillarbox::store::{DeadEvent, DeadFilter};
use serde::Serialize;

use crate::args::{Matching, Target};
use crate::failure::Failure;
use crate::report::{self, grouped, or_dash, plain};
use crate::store;

/// Lists a page of them.
pub(crate) async fn run(
    target: &Target,
    matching: Matching,
    limit: usize,
    after: Option<i64>,
) -> Result<ExitCode, Failure> {
    let filter = DeadFilter::from(matching);
    let store = store::existing(target).await?;
    let dead = DeadEvents::of(&*store);
    // One more than is shown tells whether there is another page.
    let read =
        async { Ok::<_, Failure>((dead.list(&filter, after, limit + 1).await?, dead.count(&filter).await?)) }.await;
    store.close().await;
    let (mut events, matching) = read?;
    let more = events.len() > limit;
    events.truncate(limit);
    let page = Page { next: events.last().filter(|_| more).map(|last| last.seq), events, matching };
    report::print_either(target.json, &page.json(), || page.text())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug)]
struct Page {
    events: Vec<DeadEvent>,
    /// How many there are on all pages.
    matching: u64,
    /// What to pass as `--after` to see more; `None` if this is the last page.
    next: Option<i64>,
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
    attempts: i32,
    last_error: Option<&'a str>,
    created_at: String,
    dead_at: Option<String>,
}

impl<'a> From<&'a DeadEvent> for Event<'a> {
    fn from(event: &'a DeadEvent) -> Self {
        Self {
            seq: event.seq,
            event_id: &event.event_id,
            event_type: &event.event_type,
            aggregate_type: &event.aggregate_type,
            aggregate_id: event.aggregate_id.as_deref(),
            tenant_id: event.tenant_id.as_deref(),
            key: event.key.as_deref(),
            attempts: event.attempts,
            last_error: event.last_error.as_deref(),
            created_at: event.created_at.to_string(),
            dead_at: event.dead_at.map(|time| time.to_string()),
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
                0 => "No event that was given up matches.".to_owned(),
                1 => "The one event that matches is not behind --after.".to_owned(),
                all => format!("None of the {} events that match is behind --after.", grouped(all)),
            };
        }
        let rows = self.events.iter().map(|event| {
            [
                event.seq.to_string(),
                plain(&event.event_id),
                plain(&event.event_type),
                event.aggregate_id.as_deref().map_or_else(
                    || plain(&event.aggregate_type),
                    |id| format!("{}/{}", plain(&event.aggregate_type), plain(id)),
                ),
                or_dash(event.tenant_id.as_deref()),
                event.attempts.to_string(),
                event.dead_at.map_or_else(|| "-".to_owned(), |time| time.to_string()),
                beginning(&or_dash(event.last_error.as_deref())),
            ]
        });
        let heading = ["SEQ", "EVENT ID", "TYPE", "AGGREGATE", "TENANT", "ATTEMPTS", "SINCE", "ERROR"];
        let shown = grouped(self.events.len() as u64);
        let more = self.next.map(|seq| format!("; more with --after {seq}")).unwrap_or_default();
        let table = report::listing(heading, rows).trim_fmt();
        format!("{table}\n\n{shown} of {}{more}", grouped(self.matching))
    }
}

/// What fits a line of a terminal; `show` has the rest.
fn beginning(text: &str) -> String {
    const CHARACTERS: usize = 60;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
