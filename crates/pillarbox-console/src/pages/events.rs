use axum::extract::Query;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use pillarbox_core::store::{EventFilter, EventPage, EventState, FIRST_PAGE, ListedEvent, PendingEvent, Store};
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{Filters, PAGE, PENDING, Unknown, ago, badge, empty, or_dash, pager, short};
use crate::problem::Problem;
use crate::view::View;

/// The states that the filter offers.
const STATES: [&str; 6] = [PENDING, "new", "delayed", "retrying", "done", "dead"];

#[derive(Deserialize)]
pub(crate) struct From {
    after: Option<i64>,
    below: Option<i64>,
    /// The id of an event, or the number of a row.
    #[serde(default)]
    find: String,
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    unknown: Unknown,
}

/// The events of any state, newest first; the pending ones, in the order of the table; or the one that was asked for.
pub(crate) async fn page(
    view: View,
    Query(From { after, below, find, filters, unknown }): Query<From>,
) -> Result<Response, Problem> {
    unknown.refuse()?;
    let store = view.store()?;
    let (find, mut several) = (find.trim(), Vec::new());
    if !find.is_empty() {
        let seq = found(store, find).await?;
        if let [seq] = seq[..] {
            return Ok(Redirect::to(&format!("event/{seq}")).into_response());
        }
        several = seq;
    }
    let list =
        if filters.is_pending() { pending(&view, &filters, after).await? } else { any(&view, &filters, below).await? };
    let live = html! {
        @if !several.is_empty() {
            div.notice role="status" {
                "One event has the id " code { (find) } ", and another row has this number: "
                @for seq in &several { a href=(view.href(&format!("event/{seq}"))) { "row " (seq) } " " }
            }
        } @else if !find.is_empty() {
            div.notice.warn role="status" { "No event has the id or number " code { (find) } ". It may have been purged or discarded." }
        }
        (list)
    };
    Ok(layout::page(&view, Page::Events, "Events", &form(&view, &filters, find), &live))
}

/// The first row of the event with this id, and the row with this number. Payloads stay where they are: an event may have many rows.
async fn found(store: &dyn Store, find: &str) -> Result<Vec<i64>, Problem> {
    let of_event = EventFilter { event_id: Some(find.to_owned()), ..EventFilter::new() };
    let event = answer(store.recent(&of_event, None, 1)).await?.events.first().map(|event| event.seq);
    let numbered = match find.parse() {
        Ok(seq) => answer(store.record(seq)).await?.map(|record| record.seq),
        Err(_) => None,
    };
    let mut seqs: Vec<i64> = event.into_iter().chain(numbered).collect();
    seqs.dedup();
    Ok(seqs)
}

/// A page of pending events.
async fn pending(view: &View, filters: &Filters, after: Option<i64>) -> Result<Markup, Problem> {
    let mut events = answer(view.store()?.pending(&filters.pending()?, after.unwrap_or(FIRST_PAGE), PAGE + 1)).await?;
    let next = (events.len() > PAGE).then(|| events.truncate(PAGE)).and_then(|()| events.last()).map(|event| event.seq);
    if events.is_empty() {
        return Ok(nothing(view, filters));
    }
    let address = |others: &[(&str, &str)]| format!("{}?{}", view.href("events"), filters.query(others));
    Ok(html! {
        (actions(view, filters))
        (list(view, &events))
        (pager(
            after.map(|_| address(&[])).as_deref(),
            next.map(|seq| address(&[("after", &seq.to_string())])).as_deref(),
            events.len(),
        ))
    })
}

/// A page of events of any state. It reads a bounded number of rows, and says how far back it has searched.
async fn any(view: &View, filters: &Filters, below: Option<i64>) -> Result<Markup, Problem> {
    let store = view.store()?;
    let EventPage { events, next, searched_back_to } =
        answer(store.recent(&filters.any(store).await?, below, PAGE)).await?;
    if events.is_empty() && next.is_none() && below.is_none() {
        return Ok(nothing(view, filters));
    }
    let address = |others: &[(&str, &str)]| format!("{}?{}", view.href("events"), filters.query(others));
    Ok(html! {
        @if events.is_empty() { p.faint { "None of the events that were searched matches." } } @else { (newest(view, &events)) }
        @if let Some(back_to) = searched_back_to.filter(|_| events.len() < PAGE) {
            p.notice role="status" { "Searched back to " (ago(back_to, view.now)) ". The next page searches on." }
        }
        (pager(
            below.map(|_| address(&[])).as_deref(),
            next.map(|seq| address(&[("below", &seq.to_string())])).as_deref(),
            events.len(),
        ))
    })
}

fn form(view: &View, filters: &Filters, find: &str) -> Markup {
    html! {
        form.filters method="get" action=(view.href("events")) role="search" aria-label="Find an event" {
            label.wide { "Event id or row number" input name="find" value=(find) placeholder="01JD2N8Y6T0VQZ5W4B9K3M7XRC"; }
            div.buttons { button.primary type="submit" { "Find" } }
        }
        form.filters method="get" action=(view.href("events")) role="search" aria-label="Filter of events" {
            label { "State"
                select name="state" {
                    option value="" { "any" }
                    @for state in STATES { option value=(state) selected[filters.state == state] { (state) } }
                }
            }
            label { "Event type" input name="type" value=(filters.event_type) placeholder="order.placed"; }
            label { "Key" input name="key" value=(filters.key); }
            label { "Tenant" input name="tenant" value=(filters.tenant); }
            label { "Handler" input name="handler" value=(filters.handler); }
            @if !filters.is_pending() {
                label { "Error contains" input name="error" value=(filters.error); }
                label { "Written since" input name="since" value=(filters.since) placeholder="2h or 2026-05-01 08:00"; }
                label { "before" input name="before" value=(filters.before) placeholder="30m"; }
            }
            div.buttons {
                button.primary type="submit" { "Filter" }
                @if !filters.is_empty() { a.button href=(view.href("events")) { "Clear" } }
            }
        }
    }
}

fn nothing(view: &View, filters: &Filters) -> Markup {
    let only_state = Filters { state: filters.state.clone(), ..Filters::default() } == *filters;
    match (&*filters.state, only_state) {
        ("", true) => empty(
            "No event is here",
            &html! { "Write one in a transaction of your service, and it appears here when that commits." },
        ),
        (PENDING, true) => empty(
            "Nothing is pending",
            &html! { "Every event was delivered, or given up. New ones appear here as they are committed." },
        ),
        _ => empty("No event matches", &html! { a href=(view.href("events")) { "Show all events" } "." }),
    }
}

fn actions(view: &View, filters: &Filters) -> Markup {
    let of = if filters.state == PENDING && filters.words() == "state pending" { "all" } else { "all that match" };
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

/// Events of any state as a table.
fn newest(view: &View, events: &[ListedEvent]) -> Markup {
    html! {
        div.scroll {
            table.list {
                caption.sr { "Events, newest first" }
                thead { tr {
                    th scope="col" { "Row" } th scope="col" { "State" } th scope="col" { "Event" } th scope="col" { "Key" }
                    th scope="col" { "Handler" } th.num scope="col" { "Attempts" } th scope="col" { "Written" } th scope="col" { "Ended" }
                } }
                tbody { @for event in events { tr id={ "row-" (event.seq) } {
                    @let state = event.state(view.now);
                    th scope="row" data-label="Row" { a href=(view.href(&format!("event/{}", event.seq))) { (event.seq) } }
                    td data-label="State" { (badge(state)) }
                    td data-label="Event" { (event.event_type) br; code.id { (event.event_id) }
                        @if let Some(error) = event.last_error.as_ref().filter(|_| state != EventState::Cancelled) { br; span.error { (short(error, 80)) } } }
                    td data-label="Key" { (or_dash(event.key.as_deref().or(event.aggregate_id.as_deref())))
                        @if let Some(tenant) = &event.tenant_id { br; span.faint { "tenant " (tenant) } } }
                    td data-label="Handler" { (or_dash(event.handler.as_deref())) }
                    td.num data-label="Attempts" { (event.attempts) }
                    td data-label="Written" { (ago(event.created_at, view.now)) }
                    td data-label="Ended" { @match event.done_at { Some(at) => (ago(at, view.now)), None => span.faint { "–" } } }
                } } }
            }
        }
    }
}

/// The pending events as a table, which is cards on a phone.
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
