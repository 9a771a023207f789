use axum::response::Response;
use maud::{Markup, html};

use crate::examine::{Examination, Finding};
use crate::layout::{self, Page};
use crate::parts::{command, counted, empty, within};
use crate::view::View;

/// What harms deliveries, or will: cause, evidence and remedy.
pub(crate) async fn page(view: View) -> Response {
    let live = match view.app.examinations.of(&view.source).await {
        None => empty(
            "Nobody examines this outbox here",
            &html! { "Examine it on the command line:" (command("pillarbox doctor --store URL")) },
        ),
        Some((examination, age)) => html! {
            (report(&examination))
            p.faint.asof { "Examined " (within(age)) " ago; anew after a minute. " (counted(examination.healthy as u64, "check")) " found nothing." }
        },
    };
    layout::page(&view, Page::Doctor, "Doctor", &html! {}, &live)
}

fn report(examination: &Examination) -> Markup {
    let Examination { findings, not_checked, healthy: _ } = examination;
    html! {
        @if findings.is_empty() { (empty("Nothing is wrong", &html! { "No check found a condition that harms deliveries." })) }
        @for finding in findings { (one(finding)) }
        @if !not_checked.is_empty() {
            section { h2 { "Not checked" }
                dl { @for (check, reason) in not_checked { dt { code { (check) } } dd { (reason) } } }
            }
        }
    }
}

fn one(finding: &Finding) -> Markup {
    let (class, sign, word) =
        if finding.is_severe { ("bad", "✕", "harms now") } else { ("warn", "▲", "will harm") };
    html! {
        article.finding {
            h2 { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } " " (finding.cause) " " code.id { (finding.code) } }
            dl { dt { "Evidence" } dd { (finding.evidence) } dt { "Remedy" } dd { (finding.remedy) @if let Some(text) = &finding.command { (command(text)) } } }
        }
    }
}
