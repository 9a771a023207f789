use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_doctor::Severity;
use serde::Deserialize;

use crate::examine::{Examination, Finding};
use crate::layout::{self, Page};
use crate::parts::{command, counted, empty, within};
use crate::view::View;

/// The number of the examination that the page has shown.
#[derive(Deserialize)]
pub(crate) struct Seen {
    seen: Option<u64>,
}

/// The problems that harm deliveries, or will: cause, evidence and remedy.
pub(crate) async fn page(view: View, Query(Seen { seen }): Query<Seen>) -> Response {
    let live = match view.app.examinations.of(&view.app.jobs, &view.source, seen).await {
        None => empty(
            "Nobody examines this outbox here",
            &html! { "Examine it on the command line:" (command("pillarbox doctor --store URL")) },
        ),
        Some(examined) => html! {
            (report(&examined.examination))
            p.faint.asof {
                "Examined " (within(examined.age())) " ago; anew after a minute. "
                (counted(examined.examination.healthy as u64, "check")) " found nothing. "
                a.button href=(view.href(&format!("doctor?seen={}", examined.number))) { "Examine now" }
            }
        },
    };
    layout::page(&view, Page::Doctor, "Doctor", &html! {}, &live)
}

fn report(examination: &Examination) -> Markup {
    let Examination { findings, not_checked, healthy } = examination;
    html! {
        @if findings.is_empty() { (without_findings(not_checked.len() as u64, *healthy)) }
        @for finding in findings { (one(finding)) }
        @if !not_checked.is_empty() {
            section { h2 { "Not checked: " (not_checked.len()) }
                dl { @for (check, reason) in not_checked { dt { code { (check) } } dd { (reason) } } }
            }
        }
    }
}

/// All is well only if all was checked.
fn without_findings(not_checked: u64, healthy: usize) -> Markup {
    match (not_checked, healthy) {
        (0, 0) => empty("Nothing was checked", &html! { "The examination has made no check." }),
        (0, _) => empty("Nothing is wrong", &html! { "No check found a condition that harms deliveries." }),
        (count, 0) => {
            empty("Nothing was checked", &html! { (counted(count, "check")) " could not be made; the reasons follow." })
        }
        (count, _) => empty(
            "Nothing was found, and not everything was checked",
            &html! { (counted(count, "check")) " could not be made; the reasons follow." },
        ),
    }
}

fn one(finding: &Finding) -> Markup {
    let (class, sign) = match finding.severity {
        Severity::Critical => ("bad", "✕"),
        Severity::Warning => ("warn", "▲"),
        Severity::Notice => ("neutral", "ℹ"),
    };
    let word = finding.severity.name();
    html! {
        article.finding {
            h2 { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } " " (with_code(&finding.cause)) " " code.id { (finding.code) } }
            dl { dt { "Evidence" } dd { (with_code(&finding.evidence)) } dt { "Remedy" } dd { (with_code(&finding.remedy)) @if let Some(text) = &finding.command { (command(text)) } } }
        }
    }
}

/// A text with what stands between backticks as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
