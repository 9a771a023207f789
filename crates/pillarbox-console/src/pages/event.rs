use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::event::Payload;
use pillarbox_core::handle::Delivery;
use pillarbox_core::row::FetchedRow;
use pillarbox_core::store::{EventFilter, EventState, ListedEvent, Record};
use pillarbox_engine::maintain::Pauses;
use pillarbox_routes::{Destination, Forwarder, RouteState};

use super::answer;
use crate::layout::{self, Page};
use crate::mask;
use crate::parts::{self, ago, badge, command, or_dash, within};
use crate::problem::Problem;
use crate::view::View;

/// Bytes of a payload that are shown.
const SHOWN: usize = 64 * 1024;
/// Rows of the same event that are listed beside it.
const SIBLINGS: usize = 50;

/// All that the table holds about a row, and what may be done with it.
pub(crate) async fn page(view: View, Path((_, seq)): Path<(String, i64)>) -> Result<Response, Problem> {
    let store = view.store()?;
    let record = answer(store.record(seq)).await?;
    let gone = || Problem::not_found(format!("no row has the number {seq}; it may have been purged or discarded"));
    let record = record.ok_or_else(gone)?;
    // Without their payloads: an event may have many rows, each with its own copy.
    let of_this_event = EventFilter { event_id: Some(record.event_id.to_string()), ..EventFilter::new() };
    let siblings = answer(store.recent(&of_this_event, None, SIBLINGS + 1)).await?.events;
    let state = record.state(view.now);
    let waits = if state.is_pending() {
        waits(&view, &record).await?
    } else {
        html! {}
    };
    let live = html! {
        p.lead { (badge(state)) " " strong { (record.event_type) } " " code.id { (record.event_id) } }
        (waits)
        (actions(&view, &record, state))
        @if let Some(error) = record.last_error.as_deref().filter(|_| state != EventState::Cancelled) {
            section { h2 { "Last error" } pre.error { (error) } }
        }
        div.columns {
            section { h2 { "Columns" } (columns(&view, &record)) }
            section { h2 { "Headers" } (headers(&view, &record)) }
        }
        section { h2 { "Payload" } (payload(&view, &record)) }
        section { h2 { "Failed attempts" } (attempts(&view, &record)) }
        @if siblings.len() > 1 { section { h2 { "Rows of this event" } (rows(&view, &siblings, seq)) } }
        section { h2 { "On the command line" }
            (command(&show(seq)))
            @if state == EventState::Dead { (command(&format!("pillarbox dead replay --seq {seq} --store URL"))) }
            @if matches!(state, EventState::Delayed | EventState::Retrying) { (command(&format!("pillarbox pending retry --seq {seq} --store URL"))) }
        }
    };
    let of = if state == EventState::Dead { Page::Dead } else { Page::Events };
    Ok(layout::page(&view, of, &format!("Row {seq}"), &html! {}, &live))
}

/// The command that shows the row.
fn show(seq: i64) -> String {
    format!("pillarbox events show --seq {seq} --store URL")
}

/// The pauses, the event before it that failed and the route that a pending row waits for, besides its time and a free worker.
async fn waits(view: &View, record: &Record) -> Result<Markup, Problem> {
    let store = view.store()?;
    let pauses = answer(store.pauses()).await?;
    let holding = pauses.iter().filter(|pause| pause.applies_to(&record.event_type, record.handler.as_deref()));
    let head = match answer(store.head_of(record.seq)).await? {
        Some(seq) => answer(store.record(seq)).await?,
        None => None,
    };
    let paused = answer(Pauses::of(store).before(record)).await?;
    Ok(html! {
        @for pause in holding {
            p.notice.warn { "It waits: the " (pause.kind) " " (pause.name) " is paused since " (ago(pause.since, view.now)) ". "
                a href=(view.href("pauses")) { "See the pauses" } "." }
        }
        @if let Some(head) = &head { (behind(view, head)) }
        @if let Some(seq) = paused {
            p.notice.warn { "In mode " code { "partitioned" } " it waits behind " a href=(view.href(&format!("event/{seq}"))) { "row " (seq) } " of its key, which is paused. "
                a href=(view.href("pauses")) { "See the pauses" } "." }
        }
        @if let Some(routes) = &view.source.routes { (routed(view, routes, record)) }
    })
}

/// The event before it, of the same key, that failed.
fn behind(view: &View, head: &Record) -> Markup {
    let state = head.state(view.now);
    html! {
        p.notice.warn { "In mode " code { "partitioned" } " it waits behind "
            a href=(view.href(&format!("event/{}", head.seq))) { "row " (head.seq) } " of its key, which "
            @if state == EventState::Dead { "is DEAD: replay or discard that one." }
            @else { "failed and is tried again " @match head.available_at { Some(at) => (ago(at, view.now)), None => "now" } "." }
        }
    }
}

/// The route that takes it, if that is what it waits for.
fn routed(view: &View, routes: &Forwarder, record: &Record) -> Markup {
    let FetchedRow::Row(row) = record.to_fetched() else { return html! {} };
    let name = match routes.destination(&Delivery::detached(row)) {
        Destination::Unrouted => {
            return html! { p.notice.warn { "No route takes it. " a href=(view.href("routes")) { "See the routes" } "." } };
        }
        Destination::Sent { route, .. } | Destination::Dropped { route } | Destination::Unsendable { route, .. } => {
            route
        }
    };
    let status = routes.status().into_iter().find(|status| status.route == name);
    let problem = match status.map(|status| status.state) {
        Some(RouteState::Paused { problem, .. }) => problem,
        Some(RouteState::PausedByOperator { reason, .. }) => reason,
        Some(RouteState::Delivering) | None => return html! {},
    };
    html! {
        p.notice.warn { "It waits: its route " (name) " is paused: " (problem) ". " a href=(view.href("routes")) { "See the routes" } "." }
    }
}

fn actions(view: &View, record: &Record, state: EventState) -> Markup {
    let confirm = |what: &str| format!("{}?do={what}&seq={}", view.href("confirm"), record.seq);
    html! {
        @if view.may_operate() && (state == EventState::Dead || state.is_pending()) {
            div.bar {
                @if state == EventState::Dead {
                    a.button.primary href=(confirm("replay")) { "Replay…" }
                    a.button.danger href=(confirm("discard")) { "Discard…" }
                } @else {
                    @if state != EventState::New { a.button.primary href=(confirm("retry-now")) { "Try now…" } }
                    a.button.danger href=(confirm("cancel")) { "Cancel…" }
                }
            }
        }
    }
}

fn columns(view: &View, record: &Record) -> Markup {
    let time = |time: Option<pillarbox_core::clock::Timestamp>| html! { @match time { Some(time) => (ago(time, view.now)), None => span.faint { "–" } } };
    let texts = [
        ("Ordering key", record.ordering_key.as_deref()),
        ("Aggregate type", record.aggregate_type.as_deref()),
        ("Aggregate id", record.aggregate_id.as_deref()),
        ("Tenant", record.tenant_id.as_deref()),
        ("Unique key", record.unique_key.as_deref()),
        ("Handler", record.handler.as_deref()),
        ("Held by", record.locked_by.as_deref()),
    ];
    let took = record.done_at.map(|done| within(done.since(record.created_at)));
    html! {
        dl {
            dt { "Written" } dd { (ago(record.created_at, view.now)) }
            dt { "Happened" } dd { (time(record.occurred_at)) }
            dt { "Due" } dd { @match record.available_at { Some(at) => (ago(at, view.now)), None => "at once" } }
            dt { "Ended" } dd { (time(record.done_at)) @if let Some(took) = took { span.faint { " · " (took) " after it was written" } } }
            dt { "Attempts" } dd { (record.attempts) }
            dt { "Replays" } dd { (record.replays) }
            @for (name, text) in texts { dt { (name) } dd { (or_dash(text)) } }
        }
    }
}

fn headers(view: &View, record: &Record) -> Markup {
    let Some(column) = record.headers.as_deref() else { return html! { p.faint { "None." } } };
    if column.len() > SHOWN {
        let size = parts::counted(column.len() as u64, "byte");
        return html! { p.faint { (size) } p { "They are too long to be shown here." } (command(&format!("{} --json", show(record.seq)))) };
    }
    let Ok(headers) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(column) else {
        let size = parts::counted(column.len() as u64, "byte");
        return html! { p { "The column holds no JSON object, but " (size) ", and cannot be masked: look at it on the command line." } };
    };
    if headers.is_empty() {
        return html! { p.faint { "None." } };
    }
    html! {
        dl {
            @for (name, value) in &headers {
                @let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                @let text = parts::masked(&text).or_else(|| mask::url(&text)).or_else(|| mask::form(&text)).unwrap_or(text);
                dt { code { (name) } }
                dd {
                    (mask::shown(name, &text))
                    @if let Some(link) = trace(view, name, &text) {
                        " " a href=(link) rel="noreferrer noopener" target="_blank" { "trace" span.sr { " (opens in a new tab)" } " ↗" }
                    }
                }
            }
        }
    }
}

/// The address of the trace that a header `traceparent` names.
fn trace(view: &View, name: &str, value: &str) -> Option<String> {
    let link = view.app.trace_link.as_ref().filter(|_| name.eq_ignore_ascii_case("traceparent"))?;
    let id = value.split('-').nth(1).filter(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some(link.replace("{trace_id}", id))
}

fn payload(view: &View, record: &Record) -> Markup {
    let Some(payload) = &record.payload else { return html! { p.faint { "None: the columns are empty." } } };
    let bytes = payload.as_bytes();
    let kind = if payload.content_type().is_empty() { "no content type" } else { payload.content_type() };
    let size = html! { p.faint { (kind) " · " (parts::counted(bytes.len() as u64, "byte")) } };
    if view.app.mask_payloads {
        return html! { (size) p { "This console masks payloads." } };
    }
    if bytes.len() > SHOWN {
        return html! { (size) p { "It is too long to be shown here." } (command(&format!("{} --json", show(record.seq)))) };
    }
    html! { (size) (text(payload)) }
}

fn text(payload: &Payload) -> Markup {
    let Ok(text) = std::str::from_utf8(payload.as_bytes()) else {
        return html! { pre.payload tabindex="0" aria-label="The payload's bytes" { (dump(payload.as_bytes())) } };
    };
    match (parts::pretty(text), parts::masked(text)) {
        (Some(pretty), Some(raw)) => html! {
            pre.payload tabindex="0" aria-label="The payload, indented" { (pretty) }
            details { summary { "Raw" } pre.payload.raw tabindex="0" aria-label="The payload as it is stored" { (raw) } }
        },
        // Nested too deeply to be indented.
        (None, Some(raw)) => html! { pre.payload.raw tabindex="0" aria-label="The payload as it is stored" { (raw) } },
        (_, None) if payload.content_type().contains("json") => html! {
            p { "It is no JSON, though it says so, and cannot be masked: look at it on the command line." }
        },
        (_, None) => {
            let text = mask::form(text).unwrap_or_else(|| text.to_owned());
            html! { pre.payload.raw tabindex="0" aria-label="The payload as it is stored" { (text) } }
        }
    }
}

/// The first bytes in hexadecimal digits and as text.
fn dump(bytes: &[u8]) -> String {
    let line = |(number, line): (usize, &[u8])| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            line.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        format!("{:06x}  {:<47}  {text}\n", number * 16, digits.join(" "))
    };
    bytes.chunks(16).take(256).enumerate().map(line).collect()
}

fn attempts(view: &View, record: &Record) -> Markup {
    if record.failures.is_empty() {
        return html! { p.faint { "None is recorded." } };
    }
    html! {
        div.scroll { table.list {
            thead { tr { th.num scope="col" { "Attempt" } th scope="col" { "When" } th scope="col" { "Node" } th scope="col" { "Error" } } }
            tbody { @for failed in record.failures.iter().rev() { tr {
                th.num scope="row" data-label="Attempt" { (failed.attempts) }
                td data-label="When" { (ago(failed.at, view.now)) }
                td data-label="Node" { code { (failed.node) } }
                td.error data-label="Error" { (failed.error) }
            } } }
        } }
    }
}

fn rows(view: &View, records: &[ListedEvent], current: i64) -> Markup {
    html! {
        div.scroll { table.list {
            thead { tr { th scope="col" { "Row" } th scope="col" { "State" } th scope="col" { "Handler" } th.num scope="col" { "Attempts" } } }
            tbody { @for record in records.iter().take(SIBLINGS) { tr {
                th scope="row" data-label="Row" {
                    @if record.seq == current { (record.seq) " (this one)" } @else { a href=(view.href(&format!("event/{}", record.seq))) { (record.seq) } }
                }
                td data-label="State" { (badge(record.state(view.now))) }
                td data-label="Handler" { (or_dash(record.handler.as_deref())) }
                td.num data-label="Attempts" { (record.attempts) }
            } } }
        } }
        @if records.len() > SIBLINGS { p.faint { "There are more; these are the newest." } }
    }
}
