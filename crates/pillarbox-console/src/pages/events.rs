use axum::extract::Query;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use pillarbox_core::store::{PendingEvent, PendingState};
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{Filters, PAGE, ago, badge, empty, or_dash, pager, short};
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct From {
    after: Option<i64>,
    /// The id of an event, or the number of a row.
    #[serde(default)]
    find: String,
}

/// The events that still have to be delivered, in the order of the table; or the one that was asked for.
pub(crate) async fn page(
    view: View,
    Query(filters): Query<Filters>,
    Query(From { after, find }): Query<From>,
) -> Result<Response, Problem> {
    let store = view.store()?;
    let find = find.trim();
    if !find.is_empty() {
        let seq = match answer(store.records(find)).await?.first() {
            Some(record) => Some(record.seq),
            None => match find.parse() {
                Ok(seq) => answer(store.record(seq)).await?.map(|record| record.seq),
                Err(_) => None,
            },
        };
        if let Some(seq) = seq {
            return Ok(Redirect::to(&format!("event/{seq}")).into_response());
        }
    }
    let filter = filters.pending()?;
    let mut events = answer(store.pending(&filter, after.unwrap_or(0), PAGE + 1)).await?;
    let next = (events.len() > PAGE).then(|| events.truncate(PAGE)).and_then(|()| events.last()).map(|event| event.seq);
    let address = |others: &[(&str, &str)]| format!("{}?{}", view.href("events"), filters.query(others));
    let live = html! {
        @if !find.is_empty() {
            div.notice.warn role="status" { "No event has the id or number " code { (find) } ". It may have been purged or discarded." }
        }
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
    Ok(layout::page(&view, Page::Events, "Events", &form(&view, &filters, find), &live))
}

fn form(view: &View, filters: &Filters, find: &str) -> Markup {
    html! {
        form.filters method="get" action=(view.href("events")) role="search" aria-label="Find an event" {
            label.wide { "Event id or row number" input name="find" value=(find) placeholder="01JD2N8Y6T0VQZ5W4B9K3M7XRC"; }
            div.buttons { button.primary type="submit" { "Find" } }
        }
        form.filters method="get" action=(view.href("events")) role="search" aria-label="Filter of pending events" {
            label { "State"
                select name="state" {
                    option value="" { "any pending" }
                    @for state in PendingState::ALL { option value=(state.name()) selected[filters.state == state.name()] { (state.name()) } }
                }
            }
            label { "Event type" input name="type" value=(filters.event_type) placeholder="order.placed"; }
            label { "Key" input name="key" value=(filters.key); }
            label { "Tenant" input name="tenant" value=(filters.tenant); }
            label { "Handler" input name="handler" value=(filters.handler); }
            div.buttons {
                button.primary type="submit" { "Filter" }
                @if !filters.is_empty() { a.button href=(view.href("events")) { "Clear" } }
            }
        }
    }
}

fn nothing(view: &View, filters: &Filters) -> Markup {
    if filters.is_empty() {
        return empty(
            "Nothing is pending",
            &html! { "Every event was delivered, or given up. New ones appear here as they are committed." },
        );
    }
    empty("No pending event matches", &html! { a href=(view.href("events")) { "Show all pending events" } "." })
}

fn actions(view: &View, filters: &Filters) -> Markup {
    let of = if filters.is_empty() { "all" } else { "all that match" };
    let confirm = |what: &str| format!("{}?{}", view.href("confirm"), filters.query(&[("do", what)]));
    html! {
        @if view.may_operate() {
            div.bar {
                a.button href=(confirm("retry-now")) { "Try " (of) " now…" }
                a.button.danger href=(confirm("cancel")) { "Cancel " (of) "…" }
                span.faint { "The number is shown before anything changes." }
            }
        }
    }
}

/// The events as a table, which is cards on a phone.
pub(crate) fn list(view: &View, events: &[PendingEvent]) -> Markup {
    html! {
        div.scroll {
            table.list {
                caption.sr { "Pending events, in the order of the table" }
                thead { tr {
                    th scope="col" { "Row" } th scope="col" { "State" } th scope="col" { "Event" } th scope="col" { "Key" }
                    th scope="col" { "Handler" } th.num scope="col" { "Attempts" } th scope="col" { "Written" } th scope="col" { "Due" }
                } }
                tbody { @for event in events { tr id={ "row-" (event.seq) } {
                    th scope="row" data-label="Row" { a href=(view.href(&format!("event/{}", event.seq))) { (event.seq) } }
                    td data-label="State" { (badge(event.state.into())) }
                    td data-label="Event" { (event.event_type) br; code.id { (event.event_id) }
                        @if let Some(error) = &event.last_error { br; span.error { (short(error, 80)) } } }
                    td data-label="Key" { (or_dash(event.key.as_deref().or(event.aggregate_id.as_deref())))
                        @if let Some(tenant) = &event.tenant_id { br; span.faint { "tenant " (tenant) } } }
                    td data-label="Handler" { (or_dash(event.handler.as_deref())) }
                    td.num data-label="Attempts" { (event.attempts) }
                    td data-label="Written" { (ago(event.created_at, view.now)) }
                    td data-label="Due" { @match event.due_at { Some(at) => (ago(at, view.now)), None => "at once" } }
                } } }
            }
        }
    }
}
