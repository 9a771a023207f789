//! The event types and handlers that are paused on all nodes.

use std::borrow::Cow;
use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{AuditedAction, Pause, PauseChange, PauseKind, PauseNote, Pauses};
use serde::Serialize;

use crate::args::{PauseArgs, PauseName, PausesArgs, ResumeArgs, user};
use crate::audit;
use crate::failure::Failure;
use crate::store;
use pillarbox_program::report::{self, counted, or_dash, plain};

/// Pauses an event type or a handler.
pub(crate) async fn pause(args: PauseArgs) -> Result<ExitCode, Failure> {
    let PauseArgs { target, named, reason, by, length } = args;
    let kind = PauseKind::from(named.kind);
    let by = by.unwrap_or_else(user);
    let mut note = PauseNote::new().by(&*by);
    if let Some(reason) = reason {
        note = note.reason(reason);
    }
    if let Some(length) = length {
        note = note.lasting(length);
    }
    warn_about_name(&named.name);
    let changed = store::on(&target, async |store| {
        let pauses = Pauses::of(store);
        let before = pauses.list().await?.into_iter().find(|pause| (pause.kind, &pause.name) == (kind, &named.name));
        // A pause has to be possible when the database is slow.
        let is_known = pauses.is_known(kind, &named.name).await.unwrap_or(true);
        let pause = async || Ok(pauses.pause(kind, &named.name, &note).await?);
        let words = note.in_words();
        let change = recorded(store, "pause", &by, &named, &words, |_| audit::DONE.into(), pause);
        let change = change.await?;
        // It is paused, whatever the nodes say.
        Ok((change, before, is_known, store::nodes_of_earlier_releases(store).await))
    });
    let (change, before, is_known, earlier) = changed.await?;
    if let Some(nodes) = earlier {
        report::note(&format!(
            "warning: nodes of a release that knows no pauses go on until they are replaced: {nodes}"
        ));
    }
    if !is_known {
        let name = quoted(&named.name);
        report::note(&format!(
            "note: no recent event is of the {kind} {name}; a name is not checked, and is meant to the byte"
        ));
    }
    let change = match change {
        PauseChange::Updated => "updated",
        PauseChange::Paused | PauseChange::TooMany => "paused",
    };
    let json = Changed { kind: kind.name(), name: &named.name, change };
    report::print_either(target.json, &json, || describe(kind, &named.name, before.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

/// Warns of a name that is probably not the one that was meant.
fn warn_about_name(name: &str) {
    let shown = quoted(name);
    if name != name.trim() {
        report::note(&format!(
            "warning: {shown} begins or ends in white space; only events named so to the byte are held"
        ));
    }
    if name.contains('*') {
        report::note(&format!("warning: {shown} is a name and no pattern; only events named so are held"));
    }
}

/// The result of a pause in words; `before` is the pause that it replaces.
fn describe(kind: PauseKind, name: &str, before: Option<&Pause>) -> String {
    let name = quoted(name);
    match before {
        Some(before) => {
            let said = said(before);
            format!(
                "the {kind} {name} was paused already, {said}; the reason, the end and the name of the operator are the new ones"
            )
        }
        None => format!(
            "the {kind} {name} is paused: within two seconds no node begins a call of it; a call that runs goes on, as a batch of a relay does until its last answer or its timeout"
        ),
    }
}

/// Resumes an event type or a handler.
pub(crate) async fn resume(args: ResumeArgs) -> Result<ExitCode, Failure> {
    let ResumeArgs { target, named, by } = args;
    let kind = PauseKind::from(named.kind);
    let by = by.unwrap_or_else(user);
    let resumed = store::on(&target, async |store| {
        let pauses = Pauses::of(store);
        let resume = async || Ok(pauses.resume(kind, &named.name).await?);
        let outcome = |was_paused: &bool| -> Cow<'static, str> {
            if *was_paused { audit::DONE.into() } else { audit::refused("it was not paused").into() }
        };
        let was_paused = recorded(store, "resume", &by, &named, "", outcome, resume).await?;
        let others = if was_paused { Vec::new() } else { pauses.list().await? };
        Ok((was_paused, others))
    });
    let (was_paused, others) = resumed.await?;
    let change = if was_paused { "resumed" } else { "not paused" };
    let json = Changed { kind: kind.name(), name: &named.name, change };
    report::print_either(target.json, &json, || {
        let name = quoted(&named.name);
        if was_paused {
            return format!("the {kind} {name} is resumed: the nodes go on with it within two seconds");
        }
        format!("the {kind} {name} was not paused{}", paused_instead(&others, &named.name))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a change between its two writes to the audit table.
async fn recorded<T>(
    store: &dyn Store,
    action: &str,
    by: &str,
    named: &PauseName,
    note: &str,
    outcome: impl Fn(&T) -> Cow<'static, str>,
    change: impl AsyncFnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let subject = audit::subject([(PauseKind::from(named.kind).name(), Some(named.name.clone()))]) + note;
    audit::recorded(store, &AuditedAction::new(by, action, &subject), |changed| (None, outcome(changed)), change).await
}

/// The pause that was probably meant by a name that is not paused, or else the first few pauses.
fn paused_instead(pauses: &[Pause], name: &str) -> String {
    const SHOWN: usize = 5;
    let similar = pauses.iter().find(|pause| alike(&pause.name, name));
    let shown: Vec<&Pause> = similar.map_or_else(|| pauses.iter().take(SHOWN).collect(), |pause| vec![pause]);
    let names: Vec<String> = shown.iter().map(|pause| format!("the {} {}", pause.kind, quoted(&pause.name))).collect();
    match &names[..] {
        [] => String::new(),
        [name] => format!("; {name} is"),
        names if pauses.len() > names.len() => {
            format!("; {} and {} more are: see `pillarbox pauses`", names.join(", "), pauses.len() - names.len())
        }
        names => format!("; {} are", names.join(", ")),
    }
}

/// True if two names differ at most in their case and in white space.
fn alike(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

fn quoted(name: &str) -> String {
    format!("`{}`", plain(name))
}

/// The note of a pause, in words.
fn said(pause: &Pause) -> String {
    let Pause { since, until, by, reason, .. } = pause;
    let by = by.as_deref().map(|by| format!(" by {}", plain(by))).unwrap_or_default();
    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
    let reason = reason.as_deref().map(|reason| format!(" ({})", plain(reason))).unwrap_or_default();
    format!("since {since}{until}{by}{reason}")
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
        let until = pause.until.map_or_else(|| "it is resumed".to_owned(), report::time);
        let (by, reason) = (or_dash(pause.by.as_deref()), or_dash(pause.reason.as_deref()));
        [pause.kind.name().to_owned(), plain(&pause.name), report::time(pause.since), until, by, reason]
    });
    report::listing(["PAUSED", "NAME", "SINCE", "UNTIL", "BY", "REASON"], rows).trim_fmt()
}

/// The pauses that hold an event of this type for this handler, in words.
pub(crate) fn holding(pauses: &[Pause], event_type: &str, handler: Option<&str>) -> Option<String> {
    let holding = pauses.iter().filter(|pause| pause.applies_to(event_type, handler));
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

#[cfg(test)]
mod tests {
    use pillarbox::event::Timestamp;

    use super::*;

    fn paused(names: &[&str]) -> Vec<Pause> {
        let pause = |name: &&str| Pause {
            kind: PauseKind::Type,
            name: (*name).into(),
            since: Timestamp::from_micros(0),
            until: None,
            by: None,
            reason: None,
        };
        names.iter().map(pause).collect()
    }

    #[test]
    fn resuming_a_name_that_is_not_paused_names_a_few_that_are() {
        for (names, said) in [
            (&[][..], ""),
            (&["Order"], "; the type `Order` is"),
            (&["a", " Order"], "; the type ` Order` is"),
            (&["a", "b"], "; the type `a`, the type `b` are"),
            (
                &["a", "b", "c", "d", "e", "f", "g"],
                "; the type `a`, the type `b`, the type `c`, the type `d`, the type `e` and 2 more are: see `pillarbox pauses`",
            ),
        ] {
            assert_eq!(paused_instead(&paused(names), "order"), said);
        }
    }
}
