//! The event types and handlers that are paused on all nodes.

use std::process::ExitCode;

use pillarbox::maintain::{Pause, PauseChange, PauseKind, PauseNote, Pauses};
use serde::Serialize;

use crate::args::{PauseArgs, PausesArgs, ResumeArgs};
use crate::failure::Failure;
use crate::store;
use pillarbox_program::report::{self, counted, or_dash, plain};

/// Pauses an event type or a handler.
pub(crate) async fn pause(args: PauseArgs) -> Result<ExitCode, Failure> {
    let PauseArgs { target, named, reason, by, length } = args;
    let kind = PauseKind::from(named.kind);
    let mut note = PauseNote::new();
    if let Some(reason) = reason {
        note = note.reason(reason);
    }
    if let Some(by) = by.or_else(|| std::env::var("USER").ok()).filter(|by| !by.is_empty()) {
        note = note.by(by);
    }
    if let Some(length) = length {
        note = note.lasting(length);
    }
    let change = store::on(&target, async |store| Ok(Pauses::of(store).pause(kind, &named.name, &note).await?));
    let change = match change.await? {
        PauseChange::Updated => "updated",
        PauseChange::Paused | PauseChange::TooMany => "paused",
    };
    let json = Changed { kind: kind.name(), name: &named.name, change };
    report::print_either(target.json, &json, || {
        let name = plain(&named.name);
        if change == "updated" {
            format!("the {kind} {name} was paused already; what is said of it is updated")
        } else {
            format!("the {kind} {name} is paused: within two seconds no node begins a call of it")
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Resumes an event type or a handler.
pub(crate) async fn resume(args: ResumeArgs) -> Result<ExitCode, Failure> {
    let ResumeArgs { target, named } = args;
    let kind = PauseKind::from(named.kind);
    let resumed = store::on(&target, async |store| Ok(Pauses::of(store).resume(kind, &named.name).await?)).await?;
    let change = if resumed { "resumed" } else { "not paused" };
    let json = Changed { kind: kind.name(), name: &named.name, change };
    report::print_either(target.json, &json, || {
        let name = plain(&named.name);
        if resumed {
            format!("the {kind} {name} is resumed: the nodes go on with it within two seconds")
        } else {
            format!("the {kind} {name} was not paused")
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lists what is paused.
pub(crate) async fn list(args: PausesArgs) -> Result<ExitCode, Failure> {
    let read =
        store::on(&args.target, async |store| Ok((Pauses::of(store).list().await?, store.count_paused().await?)));
    let (pauses, due) = read.await?;
    let json = Listed { pauses: pauses.iter().map(PauseJson::from).collect(), due };
    report::print_either(args.target.json, &json, || text(&pauses, due))?;
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON of a change. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    kind: &'static str,
    name: &'a str,
    /// `paused`, `updated`, `resumed` or `not paused`.
    change: &'static str,
}

/// The line of JSON of the list. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    pauses: Vec<PauseJson<'a>>,
    /// The rows that are due and held by these pauses.
    due: u64,
}

/// A pause. Its keys are a contract.
#[derive(Debug, Serialize)]
pub(crate) struct PauseJson<'a> {
    kind: &'static str,
    name: &'a str,
    since: String,
    until: Option<String>,
    by: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> From<&'a Pause> for PauseJson<'a> {
    fn from(pause: &'a Pause) -> Self {
        Self {
            kind: pause.kind.name(),
            name: &pause.name,
            since: pause.since.to_string(),
            until: pause.until.map(|until| until.to_string()),
            by: pause.by.as_deref(),
            reason: pause.reason.as_deref(),
        }
    }
}

/// A table of the pauses, for people.
pub(crate) fn table(pauses: &[Pause]) -> String {
    let rows = pauses.iter().map(|pause| {
        let until = pause.until.map_or_else(|| "it is resumed".to_owned(), |until| until.to_string());
        let (by, reason) = (or_dash(pause.by.as_deref()), or_dash(pause.reason.as_deref()));
        [pause.kind.name().to_owned(), plain(&pause.name), pause.since.to_string(), until, by, reason]
    });
    report::listing(["PAUSED", "NAME", "SINCE", "UNTIL", "BY", "REASON"], rows).trim_fmt()
}

/// The pauses that hold an event of this type for this handler, in words.
pub(crate) fn holding(pauses: &[Pause], event_type: &str, handler: Option<&str>) -> Option<String> {
    let holding = pauses.iter().filter(|pause| pause.holds(event_type, handler));
    let said: Vec<String> = holding
        .map(|pause| {
            let why = pause.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
            format!("the {} is paused since {}{why}", pause.kind, pause.since)
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn text(pauses: &[Pause], due: u64) -> String {
    if pauses.is_empty() {
        return "Nothing is paused.".to_owned();
    }
    let are = if due == 1 { "is" } else { "are" };
    format!("{}\n\nThey hold {} that {are} due.", table(pauses), counted(due, "row"))
}
