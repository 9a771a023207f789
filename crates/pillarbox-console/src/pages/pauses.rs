use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::Pause;
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{PAGE, ago, counted, empty, or_dash, pager, short};
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct From {
    /// The pauses that are on the pages before.
    #[serde(default)]
    skip: usize,
    /// The name that was just paused, if no recent event has it.
    #[serde(default)]
    unknown: String,
}

/// The event types and handlers that are paused on all nodes.
pub(crate) async fn page(view: View, Query(From { skip, unknown }): Query<From>) -> Result<Response, Problem> {
    let store = view.store()?;
    let pauses = answer(store.pauses()).await?;
    let on_page = pauses.get(skip..).unwrap_or_default();
    let on_page = on_page.get(..PAGE).unwrap_or(on_page);
    let more = pauses.len() > skip.saturating_add(PAGE);
    let next = more.then(|| format!("{}?skip={}", view.href("pauses"), skip + PAGE));
    let live = html! {
        @if let Some(pause) = pauses.iter().find(|pause| pause.name == unknown) {
            div.notice.warn role="status" { "No recent event is of the " (pause.kind) " " code { (pause.name) } ". A name is not checked, and is meant to the byte." }
        }
        @if pauses.is_empty() {
            (empty("Nothing is paused", &html! { "Pause an event type or a handler while its partner is away, or while you look for a fault: its events wait, without an attempt." }))
        } @else {
            p { "They hold " (counted(answer(store.count_paused()).await?, "row")) " now that would be due." }
            (list(&view, on_page))
            (pager((skip > 0).then(|| view.href("pauses")).as_deref(), next.as_deref(), on_page.len()))
        }
    };
    Ok(layout::page(&view, Page::Pauses, "Pauses", &form(&view), &live))
}

fn form(view: &View) -> Markup {
    html! {
        p.faint { "No call of what is paused begins on any node, within two seconds. Calls that run go on, and writers notice nothing. In mode "
            code { "partitioned" } " the later events of a key wait behind one of a paused type, and in mode " code { "ordered" } " all do." }
        @if view.may_operate() {
            form.filters method="post" action=(view.href("pause")) aria-label="Pause an event type or a handler" {
                input type="hidden" name="token" value=(view.token());
                label { "Pause" select name="kind" { option value="type" { "the event type" } option value="handler" { "the handler" } } }
                label { "Exact name" input name="name" required placeholder="order.placed"; }
                label { "Reason" input name="reason" maxlength=(Pause::MAX_REASON_CHARS) placeholder="the partner is down"; }
                label { "Resume after" input name="for" placeholder="2h; empty: not by itself"; }
                label.check { input type="checkbox" name="replace" value="yes"; "Replace a pause that is there" }
                div.buttons { button.primary type="submit" { "Pause" } }
            }
        }
    }
}

fn list(view: &View, pauses: &[Pause]) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Paused event types and handlers" }
            thead { tr {
                th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Since" } th scope="col" { "Until" }
                th scope="col" { "By" } th scope="col" { "Reason" } th scope="col" { span.sr { "Action" } }
            } }
            tbody { @for pause in pauses { tr {
                th scope="row" data-label="Name" { code { (pause.name) } }
                td data-label="Kind" { (pause.kind) }
                td data-label="Since" { (ago(pause.since, view.now)) }
                td data-label="Until" { @match pause.until { Some(until) => (ago(until, view.now)), None => "it is resumed" } }
                td data-label="By" { (or_dash(pause.by.as_deref())) }
                td data-label="Reason" { (short(pause.reason.as_deref().unwrap_or("–"), 120)) }
                td { @if view.may_operate() { (resume(view, pause)) } }
            } } }
        } }
    }
}

fn resume(view: &View, pause: &Pause) -> Markup {
    html! {
        form.inline method="post" action=(view.href("resume")) {
            input type="hidden" name="token" value=(view.token());
            input type="hidden" name="kind" value=(pause.kind);
            input type="hidden" name="name" value=(pause.name);
            button type="submit" { "Resume" span.sr { " the " (pause.kind) " " (pause.name) } }
        }
    }
}
