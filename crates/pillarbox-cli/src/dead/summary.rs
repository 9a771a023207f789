use std::process::ExitCode;

use pillarbox::maintain::{DeadEvents, DeadReason, DeadReasons};
use pillarbox_program::report::{self, counted, plain};
use serde::Serialize;

use crate::args::{Matching, Target};
use crate::failure::Failure;
use crate::listing::time;
use crate::store;

/// The most reasons in a table.
const SHOWN: usize = 30;

/// Counts the events that were given up by their types, handlers and errors.
pub(crate) async fn run(target: &Target, matching: &Matching, limit: usize, wide: bool) -> Result<ExitCode, Failure> {
    let read = store::on(target, async |store| {
        let filter = matching.filter(store).await?;
        Ok(DeadEvents::of(store).reasons(&filter, limit).await?)
    });
    let found = read.await?;
    report::print_either(target.json, &json(&found), || text(&found, wide))?;
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    reasons: Vec<JsonReason<'a>>,
    others: u64,
    read: u64,
    has_more: bool,
}

#[derive(Debug, Serialize)]
struct JsonReason<'a> {
    events: u64,
    event_type: &'a str,
    handler: Option<&'a str>,
    error: Option<&'a str>,
    common_text: Option<&'a str>,
    first_dead_at: Option<String>,
    last_dead_at: Option<String>,
    seq: i64,
    event_id: &'a str,
}

impl<'a> From<&'a DeadReason> for JsonReason<'a> {
    fn from(reason: &'a DeadReason) -> Self {
        Self {
            events: reason.events,
            event_type: &reason.event_type,
            handler: reason.handler.as_deref(),
            error: reason.error.as_deref(),
            common_text: reason.common_text.as_deref(),
            first_dead_at: reason.first.map(|time| time.to_string()),
            last_dead_at: reason.last.map(|time| time.to_string()),
            seq: reason.seq,
            event_id: &reason.event_id,
        }
    }
}

fn json(found: &DeadReasons) -> Json<'_> {
    let reasons = found.reasons.iter().map(JsonReason::from).collect();
    Json { reasons, others: found.others, read: found.read, has_more: found.has_more }
}

fn text(found: &DeadReasons, wide: bool) -> String {
    if found.reasons.is_empty() {
        return "No event that was given up matches.".to_owned();
    }
    let has_handlers = found.reasons.iter().any(|reason| reason.handler.is_some());
    let mut heading = vec!["EVENTS", "TYPE", "HANDLER", "FIRST", "LAST", "ERROR"];
    heading.retain(|column| has_handlers || *column != "HANDLER");
    let row = |reason: &DeadReason| {
        let mut cells = vec![report::grouped(reason.events), plain(&reason.event_type)];
        cells.extend(has_handlers.then(|| report::or_dash(reason.handler.as_deref())));
        cells.extend([reason.first, reason.last].into_iter().filter_map(time));
        cells.push(report::error(reason.error.as_deref(), wide));
        cells
    };
    let table = report::listing(heading, found.reasons.iter().take(SHOWN).map(row)).trim_fmt();
    format!("{table}\n\n{}", sum(found))
}

/// The line below the table: the events that were read, and those that it does not show.
fn sum(found: &DeadReasons) -> String {
    let mut sum = format!("{}, {}", counted(found.read, "event"), counted(found.reasons.len() as u64, "reason"));
    let not_shown: u64 = found.reasons.iter().skip(SHOWN).map(|reason| reason.events).sum();
    if not_shown > 0 {
        let reasons = counted(found.reasons.len().saturating_sub(SHOWN) as u64, "reason");
        sum += &format!("; {reasons} with {} in all not shown, but by --json", counted(not_shown, "event"));
    }
    if found.others > 0 {
        sum += &format!("; {} with reasons of a few events each left out", counted(found.others, "event"));
    }
    if found.has_more {
        sum += "; newer events match too: read more with --limit";
    }
    sum
}
