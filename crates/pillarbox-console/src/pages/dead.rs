use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::{DeadEvent, FIRST_PAGE};
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{Filters, PAGE, Unknown, ago, empty, or_dash, pager, short};
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct From {
    after: Option<i64>,
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    unknown: Unknown,
}

/// The events that were given up, oldest first.
pub(crate) async fn page(
    view: View,
    Query(From { after, filters, unknown }): Query<From>,
) -> Result<Response, Problem> {
    unknown.refuse()?;
    let store = view.store()?;
    let filter = filters.dead(store).await?;
    let mut events = answer(store.dead(&filter, after.unwrap_or(FIRST_PAGE), PAGE + 1)).await?;
    let next = (events.len() > PAGE).then(|| events.truncate(PAGE)).and_then(|()| events.last()).map(|event| event.seq);
    let address = |others: &[(&str, &str)]| format!("{}?{}", view.href("dead"), filters.query(others));
    let live = html! {
        @if events.is_empty() { (nothing(&view, &filters)) } @else {
            (actions(&view, &filters))
            (list(&view, &events))
            (pager(
                after.map(|_| address(&[])).as_deref(),
                next.map(|seq| address(&[("after", &seq.to_string())])).as_deref(),
                events.len(),
            ))
        }
    };
    Ok(layout::page(&view, Page::Dead, "DEAD events", &form(&view, &filters), &live))
}

fn form(view: &View, filters: &Filters) -> Markup {
    html! {
        form.filters method="get" action=(view.href("dead")) role="search" aria-label="Filter of DEAD events" {
            label { "Event type" input name="type" value=(filters.event_type) placeholder="order.placed"; }
            label { "Key" input name="key" value=(filters.key); }
            label { "Tenant" input name="tenant" value=(filters.tenant); }
            label { "Handler" input name="handler" value=(filters.handler); }
            label { "Error contains" input name="error" value=(filters.error) placeholder="timeout"; }
            label { "Given up since" input name="since" value=(filters.since) placeholder="2h or 2026-05-01 08:00"; }
            label { "before" input name="before" value=(filters.before) placeholder="30m"; }
            div.buttons {
                button.primary type="submit" { "Filter" }
                @if !filters.is_empty() { a.button href=(view.href("dead")) { "Clear" } }
            }
        }
    }
}

pub(crate) fn nothing(view: &View, filters: &Filters) -> Markup {
    if filters.is_empty() {
        return empty(
            "No event was given up",
            &html! { "Events come here when their handler has failed as often as it may, or for good." },
        );
    }
    empty(
        "No DEAD event matches",
        &html! { "Narrower than what is there: " a href=(view.href("dead")) { "show all DEAD events" } "." },
    )
}

fn actions(view: &View, filters: &Filters) -> Markup {
    let of = if filters.is_empty() { "all" } else { "all that match" };
    let confirm = |what: &str| format!("{}?{}", view.href("confirm"), filters.query(&[("do", what)]));
    html! {
        div.bar {
            a.button href={ (view.href("reasons")) "?" (filters.query(&[])) } { "Count by reason" }
            @if view.may_operate() {
                a.button href=(confirm("replay")) { "Replay " (of) "…" }
                a.button.danger href=(confirm("discard")) { "Discard " (of) "…" }
                span.faint { "The number is shown before anything changes." }
            }
        }
    }
}

/// The events as a table, which is cards on a phone.
pub(crate) fn list(view: &View, events: &[DeadEvent]) -> Markup {
    html! {
        div.scroll {
            table.list {
                caption.sr { "DEAD events, oldest first" }
                thead { tr {
                    th scope="col" { "Row" } th scope="col" { "Event" } th scope="col" { "Key" } th scope="col" { "Handler" }
                    th.num scope="col" { "Attempts" } th scope="col" { "Error" } th scope="col" { "Given up" }
                } }
                tbody { @for event in events { tr id={ "row-" (event.seq) } {
                    th scope="row" data-label="Row" { a href=(view.href(&format!("event/{}", event.seq))) { (event.seq) } }
                    td data-label="Event" { (event.event_type) br; code.id { (event.event_id) } }
                    td data-label="Key" { (or_dash(event.key.as_deref().or(event.aggregate_id.as_deref())))
                        @if let Some(tenant) = &event.tenant_id { br; span.faint { "tenant " (tenant) } } }
                    td data-label="Handler" { (or_dash(event.handler.as_deref())) }
                    td.num data-label="Attempts" { (event.attempts) }
                    td.error data-label="Error" { (short(event.last_error.as_deref().unwrap_or("–"), 120)) }
                    td data-label="Given up" { @match event.dead_at { Some(at) => (ago(at, view.now)), None => span.faint { "not recorded" } } }
                } } }
            }
        }
    }
}
