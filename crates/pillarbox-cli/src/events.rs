//! The events of any state: to look at.

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::event::Timestamp;
use pillarbox::maintain::{EventFilter, EventPage, EventState, ListedEvent};
use pillarbox_program::report::{self, counted, plain};
use serde::Serialize;

use crate::args::{EventMatching, Events};
use crate::failure::Failure;
use crate::listing::{self, Fields, Json, Listed, fields, time};
use crate::{show, store};

/// Runs one of the commands.
pub(crate) async fn run(events: Events) -> Result<ExitCode, Failure> {
    match events {
        Events::List { target, matching, limit, read_at_most, below, wide } => {
            let read_at_most = usize::try_from(read_at_most).unwrap_or(usize::MAX);
            let page = store::on(&target, async |store| {
                let filter = matching.filter(store, read_at_most).await?;
                read(store, &matching, &filter, limit.into(), below).await
            });
            let page = page.await?;
            report::print_either(target.json, &json(&page), || text(&page, wide))?;
            Ok(ExitCode::SUCCESS)
        }
        Events::Show(args) => show::run(&args).await,
    }
}

/// The most events that one page of the store has.
const MOST_READ: usize = 10_000;

/// Reads a page. Of the events that the filter finds, those of another state are left out.
async fn read(
    store: &dyn Store,
    matching: &EventMatching,
    filter: &EventFilter,
    limit: usize,
    below: Option<i64>,
) -> Result<Page, Failure> {
    let now = store.now().await?;
    let page = if matching.is_narrower() {
        let most = filter.read_at_most.min(MOST_READ).max(limit);
        let EventPage { mut events, next, searched_back_to } = store.recent(filter, below, most).await?;
        events.retain(|event| matching.has_state(event.state(now)));
        events.truncate(limit);
        EventPage::new(filter, events, limit, next.zip(searched_back_to))
    } else {
        store.recent(filter, below, limit).await?
    };
    let EventPage { events, next, searched_back_to } = page;
    let events = events.into_iter().map(|event| Shown { state: event.state(now), event }).collect();
    Ok(Page { events, next, searched_back_to })
}

#[derive(Debug)]
struct Page {
    events: Vec<Shown>,
    /// The `--below` of the next page; `None` if nothing is left to read.
    next: Option<i64>,
    searched_back_to: Option<Timestamp>,
}

/// An event, and its state when it was read.
#[derive(Debug)]
struct Shown {
    event: ListedEvent,
    state: EventState,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct PageJson<'a> {
    events: Vec<Json<'a, Own<'a>>>,
    /// The `--below` of the next page; null if nothing is left to read.
    next: Option<i64>,
    searched_back_to: Option<String>,
}

fn json(page: &Page) -> PageJson<'_> {
    let searched_back_to = page.searched_back_to.map(|time| time.to_string());
    PageJson { events: listing::json(&page.events), next: page.next, searched_back_to }
}

fn text(page: &Page, wide: bool) -> String {
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
    state: &'static str,
    due_at: Option<String>,
    done_at: Option<String>,
    held_by: Option<&'a str>,
}

impl Listed for Shown {
    type Own<'a> = Own<'a>;

    fn fields(&self) -> Fields<'_> {
        fields!(self.event)
    }

    fn own(&self) -> Own<'_> {
        let ListedEvent { due_at, done_at, held_by, .. } = &self.event;
        let [due_at, done_at] = [due_at, done_at].map(|time| time.map(|time| time.to_string()));
        Own { state: self.state.name(), due_at, done_at, held_by: held_by.as_deref() }
    }

    fn columns(&self) -> Vec<(&'static str, Option<String>)> {
        let ListedEvent { attempts, created_at, due_at, done_at, held_by, .. } = &self.event;
        vec![
            ("STATE", Some(self.state.name().to_owned())),
            ("ATTEMPTS", Some(attempts.to_string())),
            ("CREATED", time(Some(*created_at))),
            ("DUE", due_at.and_then(|due| time(Some(due)))),
            ("ENDED", time(*done_at)),
            ("HELD BY", held_by.as_deref().map(plain)),
        ]
    }
}
