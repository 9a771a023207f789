use axum::extract::Path;
use axum::response::Response;
use maud::html;

use crate::actions::title;
use crate::layout::{self, Page};
use crate::parts::{ago, counted, grouped};
use crate::problem::Problem;
use crate::view::View;

/// The progress of a change of many events.
pub(crate) async fn page(view: View, Path((_, id)): Path<(String, u64)>) -> Result<Response, Problem> {
    let job = view.app.jobs.find(id).filter(|job| job.source == view.source.name());
    let job = job.ok_or_else(|| Problem::not_found("this process knows no such change; the audit has it"))?;
    let (changed, ended) = (job.changed(), job.ended());
    let live = html! {
        p.lead { (title(job.action)) " " @if job.filter.is_empty() { "all" } @else { (job.filter) } }
        progress max=(job.expected.max(changed).max(1)) value=(if ended.is_some() { job.expected.max(changed).max(1) } else { changed })
            aria-label={ (title(job.action)) ", progress" } {}
        p role="status" {
            @match &ended {
                None => { (grouped(changed)) " of " (grouped(job.expected)) " rows so far…" }
                Some(Ok(rows)) => { span.badge.good { "✓ finished" } " " (were(*rows)) " " (job.action.participle()) "." }
                Some(Err(problem)) => { span.badge.bad { "✕ failed" } " " (were(changed)) " " (job.action.participle()) " before: " (problem) }
            }
        }
        p.faint { "Begun by " (job.who) " " (ago(job.began, view.now)) "." @if ended.is_none() { " It goes on if you leave this page, and ends with this process." } }
        p { a.button href=(view.href(if job.action.is_about_dead() { "dead" } else { "events" })) { "Back to the list" } }
    };
    let of = if job.action.is_about_dead() { Page::Dead } else { Page::Events };
    Ok(layout::page(&view, of, title(job.action), &html! {}, &live))
}

/// `1 row was`, `2 rows were`.
fn were(rows: u64) -> String {
    format!("{} {}", counted(rows, "row"), if rows == 1 { "was" } else { "were" })
}
