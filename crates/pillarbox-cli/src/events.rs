//! The events of any state: to look at.

use std::process::ExitCode;

use pillarbox::maintain::{EventPage, ListedEvent};
use pillarbox_program::report::{self, counted, plain};
use serde::Serialize;

use crate::args::{EventMatching, Events, Target};
use crate::failure::Failure;
use crate::listing::{self, Fields, Json, Listed, fields, time};
use crate::{dead, store};

/// Runs one of the commands.
pub(crate) async fn run(events: Events) -> Result<ExitCode, Failure> {
    match events {
        Events::List { target, matching, limit, read_at_most, below, wide } => {
            let page = read(&target, &matching, limit.into(), read_at_most, below).await?;
            report::print_either(target.json, &json(&page), || text(&page, wide))?;
            Ok(ExitCode::SUCCESS)
        }
        Events::Show { target, event_id, seq, handler } => {
            dead::show::run(&target, event_id.as_deref(), seq, handler.as_deref()).await
        }
    }
}

async fn read(
    target: &Target,
    matching: &EventMatching,
    limit: usize,
    read_at_most: u32,
    below: Option<i64>,
) -> Result<EventPage, Failure> {
    store::on(target, async |store| {
        let filter = matching.filter(store, usize::try_from(read_at_most).unwrap_or(usize::MAX)).await?;
        Ok(store.recent(&filter, below, limit).await?)
    })
    .await
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct PageJson<'a> {
    events: Vec<Json<'a, Own<'a>>>,
    /// The `--below` of the next page; null if nothing is left to read.
    next: Option<i64>,
    searched_back_to: Option<String>,
}

fn json(page: &EventPage) -> PageJson<'_> {
    let searched_back_to = page.searched_back_to.map(|time| time.to_string());
    PageJson { events: listing::json(&page.events), next: page.next, searched_back_to }
}

fn text(page: &EventPage, wide: bool) -> String {
    let shown = match page.events.len() {
        0 => "No event matches".to_owned(),
        some => format!("{}\n\n{}", listing::table(&page.events, wide), counted(some as u64, "event")),
    };
    match (page.next, page.searched_back_to) {
        (Some(next), Some(time)) => format!("{shown}; searched back to {time}, go on with --below {next}"),
        _ => format!("{shown}; nothing is left to search"),
    }
}

/// The fields of an event of any state alone.
#[derive(Debug, Serialize)]
pub(crate) struct Own<'a> {
    status: String,
    due_at: Option<String>,
    done_at: Option<String>,
    held_by: Option<&'a str>,
}

impl Listed for ListedEvent {
    type Own<'a> = Own<'a>;

    fn fields(&self) -> Fields<'_> {
        fields!(self)
    }

    fn own(&self) -> Own<'_> {
        let [due_at, done_at] = [self.due_at, self.done_at].map(|time| time.map(|time| time.to_string()));
        Own { status: self.status_name(), due_at, done_at, held_by: self.held_by.as_deref() }
    }

    fn columns(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("STATUS", Some(self.status_name())),
            ("ATTEMPTS", Some(self.attempts.to_string())),
            ("CREATED", time(Some(self.created_at))),
            ("DUE", self.due_at.and_then(|due| time(Some(due)))),
            ("ENDED", time(self.done_at)),
            ("HELD BY", self.held_by.as_deref().map(plain)),
        ]
    }
}
