use std::process::ExitCode;

use pillarbox::maintain::{Pauses, PendingEvent, PendingEvents, PendingFilter};
use pillarbox_program::report::{self, plain};
use serde::Serialize;

use crate::args::{PendingMatching, Target};
use crate::failure::Failure;
use crate::listing::{CountedPage, Fields, Listed, fields, time};
use crate::store;

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
        let events = pending.list(&filter, after, limit + 1).await?;
        Ok((events, pending.count(&filter).await?, Pauses::of(store).list().await?))
    });
    let (events, matching, pauses) = read.await?;
    let is_paused =
        |event: &PendingEvent| pauses.iter().any(|pause| pause.applies_to(&event.event_type, event.handler.as_deref()));
    let events = events.into_iter().map(|event| Shown { paused: is_paused(&event), event }).collect();
    let page = CountedPage::new(events, matching, limit, wide);
    report::print_either(target.json, &page.json(), || page.text("No pending event matches."))?;
    Ok(ExitCode::SUCCESS)
}

/// An event, and true if a pause of its type or handler holds it.
#[derive(Debug)]
struct Shown {
    event: PendingEvent,
    paused: bool,
}

/// The fields of a pending event alone.
#[derive(Debug, Serialize)]
pub(crate) struct Own<'a> {
    state: &'static str,
    /// True if its type or handler is paused.
    paused: bool,
    due_at: Option<String>,
    held_by: Option<&'a str>,
}

impl Listed for Shown {
    type Own<'a> = Own<'a>;

    fn fields(&self) -> Fields<'_> {
        fields!(self.event)
    }

    fn own(&self) -> Own<'_> {
        let PendingEvent { state, due_at, held_by, .. } = &self.event;
        let due_at = due_at.map(|time| time.to_string());
        Own { state: state.name(), paused: self.paused, due_at, held_by: held_by.as_deref() }
    }

    fn columns(&self) -> Vec<(&'static str, Option<String>)> {
        let PendingEvent { state, attempts, due_at, held_by, .. } = &self.event;
        let paused = if self.paused { ", paused" } else { "" };
        vec![
            ("STATE", Some(format!("{}{paused}", state.name()))),
            ("ATTEMPTS", Some(attempts.to_string())),
            ("DUE", time(*due_at)),
            ("HELD BY", held_by.as_deref().map(plain)),
        ]
    }
}
