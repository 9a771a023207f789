use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::{Blocked, EventState, FIRST_PAGE};
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{Filters, PAGE, badge, empty, grouped, or_dash, pager, short, within};
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct From {
    after: Option<i64>,
}

/// The keys that wait, each with the event that blocks it and the number that waits behind.
pub(crate) async fn page(view: View, Query(From { after }): Query<From>) -> Result<Response, Problem> {
    let store = view.store()?;
    let mut blocked = answer(store.blocked(after.unwrap_or(FIRST_PAGE), PAGE + 1)).await?;
    let next =
        (blocked.len() > PAGE).then(|| blocked.truncate(PAGE)).and_then(|()| blocked.last()).map(|head| head.seq);
    let live = html! {
        @if blocked.is_empty() {
            (empty("No key is blocked", &html! { "A key is listed here while later events wait behind one that failed." }))
        } @else {
            (list(&view, &blocked))
            (pager(
                after.map(|_| view.href("keys")).as_deref(),
                next.map(|seq| view.href(&format!("keys?after={seq}"))).as_deref(),
                blocked.len(),
            ))
        }
    };
    let fixed = html! {
        p.faint { "In mode " code { "partitioned" } " the later events of a key wait behind one that failed: until it is tried again, or, if it is DEAD, until you replay or discard it. In modes without order they do not wait." }
    };
    Ok(layout::page(&view, Page::Keys, "Blocked keys", &fixed, &live))
}

fn list(view: &View, blocked: &[Blocked]) -> Markup {
    let behind = |head: &Blocked| {
        let filter = Filters { key: head.key.clone(), ..Filters::default() };
        view.href(&format!("events?{}", filter.query(&[])))
    };
    let state = |head: &Blocked| if head.dead { EventState::Dead } else { EventState::Retrying };
    html! {
        div.scroll { table.list {
            caption.sr { "Blocked keys, by the row that blocks each" }
            thead { tr {
                th scope="col" { "Key" } th.num scope="col" { "Waiting" } th scope="col" { "Blocked by" } th scope="col" { "State" }
                th.num scope="col" { "Attempts" } th scope="col" { "Next attempt" } th scope="col" { "Error" }
            } }
            tbody { @for head in blocked { tr id={ "row-" (head.seq) } {
                th scope="row" data-label="Key" { (head.key) }
                td.num data-label="Waiting" { a href=(behind(head)) { (grouped(head.waiting)) @if head.waiting >= Blocked::COUNTED_UP_TO { "+" } span.sr { " events of key " (head.key) } } }
                td data-label="Blocked by" { a href=(view.href(&format!("event/{}", head.seq))) { (head.event_type) " · " (head.seq) } br; span.faint { "handler " (or_dash(head.handler.as_deref())) } }
                td data-label="State" { (badge(state(head))) }
                td.num data-label="Attempts" { (head.attempts) }
                td data-label="Next attempt" { @if head.dead { "waits for you" } @else { @match head.due_in { Some(due) => { "in " (within(due)) }, None => "now" } } }
                td.error data-label="Error" { (short(head.last_error.as_deref().unwrap_or("–"), 120)) }
            } } }
        } }
    }
}
