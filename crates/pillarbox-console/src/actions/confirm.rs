use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::{FIRST_PAGE, OperatorAction, Record};
use serde::Deserialize;

use super::action::{consequence, is_about, is_final, named, title};
use crate::layout::{self, Page};
use crate::pages::{answer, dead, events};
use crate::parts::{Filters, Unknown, badge, counted, empty};
use crate::problem::Problem;
use crate::view::View;

/// Rows that a confirmation shows.
const PREVIEW: usize = 10;

#[derive(Deserialize)]
pub(crate) struct ConfirmQuery {
    #[serde(rename = "do", deserialize_with = "named")]
    action: OperatorAction,
    seq: Option<i64>,
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Shows the rows that would be changed and their number, before they are.
pub(crate) async fn confirm(
    view: View,
    Query(ConfirmQuery { action, seq, filters, unknown }): Query<ConfirmQuery>,
) -> Result<Response, Problem> {
    if !view.may_operate() {
        return Err(Problem::read_only_role());
    }
    unknown.refuse()?;
    let record = match seq {
        Some(seq) => Some(answer(view.store()?.record(seq)).await?.ok_or_else(|| no_row(seq))?),
        None => None,
    };
    let (count, preview) = match &record {
        Some(record) => one(&view, action, record),
        None if action.is_about_dead() => all_dead(&view, &filters).await?,
        None => all_pending(&view, action, &filters).await?,
    };
    let of = if action.is_about_dead() { Page::Dead } else { Page::Events };
    let back = match seq {
        Some(seq) => view.href(&format!("event/{seq}")),
        None => format!("{}?{}", view.href(if action.is_about_dead() { "dead" } else { "events" }), filters.query(&[])),
    };
    let which = if filters.is_empty() { String::new() } else { format!(" with {}", filters.words()) };
    let body = html! {
        @if count == 0 {
            (empty("There is nothing to change", &html! { a href=(back) { "Go back" } "." }))
        } @else {
            div.ask.bad[is_final(action)] {
                h2 #question { (title(action)) " " (counted(count, "row")) (which) "?" }
                p { (consequence(action)) }
                form method="post" action=(view.href("act")) aria-labelledby="question" {
                    input type="hidden" name="token" value=(view.token());
                    input type="hidden" name="do" value=(action.name());
                    input type="hidden" name="count" value=(count);
                    @if let Some(record) = &record {
                        input type="hidden" name="seq" value=(record.seq);
                        input type="hidden" name="row_event" value=(record.event_id);
                        input type="hidden" name="row_handler" value=(record.handler.as_deref().unwrap_or_default());
                    } @else { (filters.hidden()) }
                    button.danger[is_final(action)].primary[!is_final(action)] type="submit" { (title(action)) " " (counted(count, "row")) }
                    a.button href=(back) { "Leave them as they are" }
                }
            }
            section { h2 { @if seq.is_some() { "The row" } @else { "The first of them" } } (preview) }
        }
    };
    Ok(layout::page(&view, of, title(action), &body, &html! {}))
}

fn one(view: &View, action: OperatorAction, record: &Record) -> (u64, Markup) {
    let state = record.state(view.now);
    let preview = html! { p { (badge(state)) " " (record.event_type) " " code.id { (record.event_id) } } };
    (u64::from(is_about(action, state)), preview)
}

pub(crate) fn no_row(seq: i64) -> Problem {
    Problem::not_found(format!("no row has the number {seq}; it may have been purged or discarded"))
}

async fn all_dead(view: &View, filters: &Filters) -> Result<(u64, Markup), Problem> {
    let store = view.store()?;
    let filter = filters.dead(store).await?;
    let count = answer(store.count_dead(&filter)).await?;
    let first = answer(store.dead(&filter, FIRST_PAGE, PREVIEW)).await?;
    Ok((count, dead::list(view, &first)))
}

async fn all_pending(view: &View, action: OperatorAction, filters: &Filters) -> Result<(u64, Markup), Problem> {
    let (store, filter) = (view.store()?, filters.pending()?);
    let pending = view.source.pending().map_err(Problem::unavailable)?;
    let count = match action {
        OperatorAction::RetryNow => answer(pending.count_waiting(&filter)).await?,
        _ => answer(store.count_pending(&filter)).await?,
    };
    let first = answer(store.pending(&filter, FIRST_PAGE, PREVIEW)).await?;
    Ok((count, events::list(view, &first)))
}
