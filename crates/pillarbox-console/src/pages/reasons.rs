use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_engine::maintain::{DeadEvents, DeadReason, DeadReasons};
use serde::Deserialize;

use super::{answer, dead};
use crate::layout::{self, Page};
use crate::parts::{Filters, Unknown, ago, grouped, or_dash, short};
use crate::problem::Problem;
use crate::view::View;

/// The most events that are read for the page, oldest first.
const READ: usize = 5_000;

/// The most reasons on the page.
const SHOWN: usize = 100;

#[derive(Deserialize)]
pub(crate) struct From {
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    unknown: Unknown,
}

/// The events that were given up, counted by type, handler and error.
pub(crate) async fn page(view: View, Query(From { filters, unknown }): Query<From>) -> Result<Response, Problem> {
    unknown.refuse()?;
    let store = view.store()?;
    let filter = filters.dead(store).await?;
    let found = answer(DeadEvents::of(store).reasons(&filter, READ)).await?;
    let live = html! {
        @if found.reasons.is_empty() { (dead::nothing(&view, &filters)) } @else { (list(&view, &filters, &found)) }
    };
    let fixed = html! {
        p.faint {
            "Events of one type, handler and error are counted together. Words with a digit, such as ids and times, do not tell errors apart. A number leads to the events whose errors contain what is common to those of the reason, which may be more. "
            a href={ (view.href("dead")) "?" (filters.query(&[])) } { "List them one by one" } "."
        }
    };
    Ok(layout::page(&view, Page::Dead, "DEAD events by reason", &fixed, &live))
}

fn list(view: &View, filters: &Filters, found: &DeadReasons) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Reasons for which events were given up, most events first" }
            thead { tr {
                th.num scope="col" { "Events" } th scope="col" { "Event type" } th scope="col" { "Handler" } th scope="col" { "Error" }
                th scope="col" { "First" } th scope="col" { "Last" } th scope="col" { "Example" }
            } }
            tbody { @for reason in found.reasons.iter().take(SHOWN) { tr id={ "row-" (reason.seq) } {
                th.num scope="row" data-label="Events" { a href=(of(view, filters, reason)) { (grouped(reason.events)) span.sr { " events, listed" } } }
                td data-label="Event type" { (reason.event_type) }
                td data-label="Handler" { (or_dash(reason.handler.as_deref())) }
                td.error data-label="Error" { (short(reason.error.as_deref().unwrap_or("–"), 200)) }
                @for (name, time) in [("First", reason.first), ("Last", reason.last)] {
                    td data-label=(name) { @match time { Some(at) => (ago(at, view.now)), None => span.faint { "not recorded" } } }
                }
                td data-label="Example" { a href=(view.href(&format!("event/{}", reason.seq))) { (reason.seq) } }
            } } }
        } }
        @if found.reasons.len() > SHOWN { p.faint { "These are the most frequent of " (grouped(found.reasons.len() as u64)) " reasons." } }
        @if found.others > 0 { p.faint { (grouped(found.others)) " more events have reasons of a few events each." } }
        @if found.has_more { p.faint { "Of the oldest " (grouped(found.read)) " events; narrow the filter, or ask " code { "pillarbox dead summary" } "." } }
    }
}

/// The address of the list of a reason's events: within the filter, and by the text that all their errors have in common.
fn of(view: &View, filters: &Filters, reason: &DeadReason) -> String {
    let mut filters = filters.clone();
    filters.event_type.clone_from(&reason.event_type);
    if let Some(handler) = &reason.handler {
        filters.handler.clone_from(handler);
    }
    if let Some(text) = &reason.common_text {
        filters.error.clone_from(text);
    }
    format!("{}?{}", view.href("dead"), filters.query(&[]))
}
