//! Everything that the table holds about an event.

use std::process::ExitCode;

use pillarbox::event::Timestamp;
use pillarbox::maintain::{DeadEvents, EventState, FailedAttempt, Pauses, Record};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::pause;
use crate::payload::{PayloadJson, base64, content_type};
use crate::store;
use pillarbox_program::report::{self, or_dash, plain};

/// Shows all that the table holds about one event, or about it and one handler, whatever its state.
pub(crate) async fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let ShowArgs { target, event_id, seq, handler } = args;
    let (event_id, handler, seq) = (event_id.as_deref().unwrap_or_default(), handler.as_deref(), *seq);
    let read = store::on(target, async |store| {
        let now = store.now().await?;
        let mut records: Vec<Record> = match seq {
            Some(seq) => store.record(seq).await?.into_iter().collect(),
            None => DeadEvents::of(store).show(event_id).await?,
        };
        if records.is_empty() {
            return Err(seq.map_or_else(|| Failure::NoEvent(event_id.to_owned()), Failure::NoRow));
        }
        if let Some(handler) = handler {
            records.retain(|record| record.handler.as_deref() == Some(handler));
            if records.is_empty() {
                return Err(Failure::NotForHandler { event_id: event_id.to_owned(), handler: handler.to_owned() });
            }
        }
        // The row that each waits behind, in the order of the records.
        let mut heads = Vec::with_capacity(records.len());
        for record in &records {
            let failed = store.head_of(record.seq).await?;
            let paused = if record.state(now).is_pending() { Pauses::of(store).before(record).await? } else { None };
            // The first of them is what it waits for first.
            heads.push(match failed.into_iter().chain(paused).min() {
                Some(head) => store.record(head).await?.map(|record| (record, Some(head) == paused)),
                None => None,
            });
        }
        Ok((records.into_iter().zip(heads).collect::<Vec<_>>(), store.pauses().await?, now))
    });
    let (records, pauses, now) = read.await?;
    // One after the other: an event has a row for each of its handlers, if they have names.
    for (index, (record, head)) in records.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let state = record.state(now);
        let paused = if state.is_pending() {
            pause::holding(&pauses, &record.event_type, record.handler.as_deref())
        } else {
            None
        };
        let waits_behind = head.as_ref().map(|(head, _)| head.seq);
        let json = Json { paused: paused.as_deref(), waits_behind, ..Json::new(record, state) };
        let behind = head.as_ref().map(|(head, is_paused)| behind(head, head.state(now), *is_paused));
        let waits = paused.clone().into_iter().chain(behind);
        report::print_either(target.json, &json, || format!("{gap}{}", text(record, state, waits)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON: the columns. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    seq: i64,
    event_id: &'a str,
    event_type: &'a str,
    aggregate_type: Option<&'a str>,
    aggregate_id: Option<&'a str>,
    tenant_id: Option<&'a str>,
    key: Option<&'a str>,
    unique_key: Option<&'a str>,
    handler: Option<&'a str>,
    #[serde(flatten)]
    payload: PayloadJson<'a>,
    content_type: Option<&'a str>,
    headers: Option<&'a str>,
    state: &'static str,
    /// The column, as stored.
    status: i16,
    attempts: i32,
    replays: i32,
    available_at: Option<String>,
    occurred_at: Option<String>,
    created_at: String,
    done_at: Option<String>,
    last_error: Option<&'a str>,
    locked_by: Option<&'a str>,
    delivered_as: Option<&'a str>,
    failures: Vec<FailureJson<'a>>,
    /// The pause that a pending event waits for, in words.
    paused: Option<&'a str>,
    /// The `seq` of an earlier event of its key that failed or is paused, for which it waits where keys are kept in order.
    waits_behind: Option<i64>,
}

/// The event that another of its key waits behind, in words.
fn behind(head: &Record, state: EventState, is_paused: bool) -> String {
    let Record { seq, event_id, .. } = head;
    let (state, id) = (if is_paused { "paused" } else { state.name() }, plain(event_id));
    format!("in mode partitioned, row {seq} of its key, event {id}, which is {state}")
}

/// A failed attempt.
#[derive(Debug, Serialize)]
struct FailureJson<'a> {
    attempts: u32,
    at: String,
    node: &'a str,
    error: &'a str,
}

impl<'a> From<&'a FailedAttempt> for FailureJson<'a> {
    fn from(failed: &'a FailedAttempt) -> Self {
        Self { attempts: failed.attempts, at: failed.at.to_string(), node: &failed.node, error: &failed.error }
    }
}

impl<'a> Json<'a> {
    fn new(record: &'a Record, state: EventState) -> Self {
        Self {
            seq: record.seq,
            event_id: &record.event_id,
            event_type: &record.event_type,
            aggregate_type: record.aggregate_type.as_deref(),
            aggregate_id: record.aggregate_id.as_deref(),
            tenant_id: record.tenant_id.as_deref(),
            key: record.ordering_key.as_deref(),
            unique_key: record.unique_key.as_deref(),
            handler: record.handler.as_deref(),
            payload: record.payload.as_ref().into(),
            content_type: record.payload.as_ref().and_then(content_type),
            headers: record.headers.as_deref(),
            state: state.name(),
            status: record.status,
            attempts: record.attempts,
            replays: record.replays,
            available_at: record.available_at.map(|time| time.to_string()),
            occurred_at: record.occurred_at.map(|time| time.to_string()),
            created_at: record.created_at.to_string(),
            done_at: record.done_at.map(|time| time.to_string()),
            last_error: record.last_error.as_deref(),
            locked_by: record.locked_by.as_deref(),
            delivered_as: record.delivered_as.as_deref(),
            failures: record.failures.iter().map(FailureJson::from).collect(),
            paused: None,
            waits_behind: None,
        }
    }
}

fn text(record: &Record, state: EventState, waits: impl Iterator<Item = String>) -> String {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), report::time);
    let payload = record.payload.as_ref();
    let kind = payload.map(|payload| payload.content_type()).filter(|kind| !kind.is_empty());
    let content =
        payload.map_or_else(|| "-".to_owned(), |payload| payload.as_json().map_or_else(|| base64(payload), plain));
    let lines = [
        ("event id", plain(&record.event_id)),
        ("seq", record.seq.to_string()),
        ("type", plain(&record.event_type)),
        ("aggregate type", or_dash(record.aggregate_type.as_deref())),
        ("aggregate id", or_dash(record.aggregate_id.as_deref())),
        ("tenant", or_dash(record.tenant_id.as_deref())),
        ("key", or_dash(record.ordering_key.as_deref())),
        ("unique key", or_dash(record.unique_key.as_deref())),
        ("handler", or_dash(record.handler.as_deref())),
        ("state", state.name().to_owned()),
        ("status", record.status.to_string()),
        ("failed attempts", record.attempts.to_string()),
        ("replays", record.replays.to_string()),
        ("created", report::time(record.created_at)),
        ("occurred", time(record.occurred_at)),
        ("due", time(record.available_at)),
        ("ended", time(record.done_at)),
        ("delivered as", or_dash(record.delivered_as.as_deref())),
        ("held by", or_dash(record.locked_by.as_deref())),
        ("headers", or_dash(record.headers.as_deref())),
        ("content type", or_dash(kind)),
        ("payload", content),
        ("error", or_dash(record.last_error.as_deref())),
    ];
    // Not a table: payloads and errors are long, and are copied more easily without the spaces of a table.
    let failure = |failed: &FailedAttempt| {
        let FailedAttempt { attempts, at, node, error } = failed;
        // An error that no further attempt would mend counts as none.
        let counted = match attempts {
            0 => "not counted as an attempt".to_owned(),
            attempts => format!("failed attempts by then: {attempts}"),
        };
        format!("{} on {} ({counted}): {}", report::time(*at), plain(node), plain(error))
    };
    let failures = record.failures.iter().map(|failed| ("failure", failure(failed)));
    let waits = waits.map(|waits| ("waits for", waits));
    let lines: Vec<String> =
        lines.into_iter().chain(failures).chain(waits).map(|(name, value)| format!("{name:<15} {value}")).collect();
    lines.join("\n")
}
