use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::AuditEntry;
use serde::Deserialize;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{PAGE, ago, empty, grouped, pager, short};
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct From {
    below: Option<i64>,
}

/// The changes of operators, the newest first.
pub(crate) async fn page(view: View, Query(From { below }): Query<From>) -> Result<Response, Problem> {
    let mut entries = answer(view.store()?.actions(below, PAGE + 1)).await?;
    let next =
        (entries.len() > PAGE).then(|| entries.truncate(PAGE)).and_then(|()| entries.last()).map(|entry| entry.id);
    let live = html! {
        @if entries.is_empty() {
            (empty("Nobody has changed anything yet", &html! { "Each replay, discard, cancel, retry and purge by an operator is recorded here, from this console and from the command line." }))
        } @else {
            (list(&view, &entries))
            (pager(
                below.map(|_| view.href("audit")).as_deref(),
                next.map(|id| view.href(&format!("audit?below={id}"))).as_deref(),
                entries.len(),
            ))
        }
    };
    Ok(layout::page(&view, Page::Audit, "Audit", &html! {}, &live))
}

fn list(view: &View, entries: &[AuditEntry]) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Changes by operators, newest first" }
            thead { tr {
                th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } th scope="col" { "Events" }
                th.num scope="col" { "Rows" } th scope="col" { "Outcome" }
            } }
            tbody { @for entry in entries { tr id={ "entry-" (entry.id) } {
                th scope="row" data-label="When" { (ago(entry.began_at, view.now)) }
                td data-label="Who" { (entry.who) }
                td data-label="What" { (entry.action) }
                td data-label="Events" { (short(&entry.subject, 120)) }
                td.num data-label="Rows" { @match entry.changed { Some(rows) => (grouped(rows)), None => span.faint { "–" } } }
                td data-label="Outcome" { (outcome(entry)) }
            } } }
        } }
    }
}

fn outcome(entry: &AuditEntry) -> Markup {
    match entry.outcome.as_deref() {
        Some("done") => html! { span.badge.good { span aria-hidden="true" { "✓" } " done" } },
        // The command line refuses some of the events that it is given, and changes the others.
        Some(refused) if refused.starts_with("refused: ") || refused.starts_with("done, ") => {
            let (badge, why) = refused.split_once([':', ',']).unwrap_or((refused, ""));
            html! { span.badge.warn { span aria-hidden="true" { "✕" } " " (badge) } " " (short(why.trim_start(), 80)) }
        }
        Some(problem) => {
            html! { span.badge.bad { span aria-hidden="true" { "✕" } " failed" } " " (short(problem, 80)) }
        }
        None => html! { span.badge.warn { span aria-hidden="true" { "…" } " not ended" } },
    }
}
