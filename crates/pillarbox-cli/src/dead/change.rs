use std::process::ExitCode;

use indicatif::ProgressBar;
use pillarbox::Store;
use pillarbox::maintain::DeadEvents;
use pillarbox::store::DeadFilter;
use serde::Serialize;

use super::show::status_name;
use crate::args::{Chosen, Target};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::report::{self, counted};
use crate::{progress, store};

/// What is to become of events that were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Replay,
    Discard,
}

/// Replays or discards the chosen events. It fails if one of them was not given up, after the others were dealt with.
pub(super) async fn run(target: &Target, chosen: Chosen, fate: Fate) -> Result<ExitCode, Failure> {
    let store = store::existing(target).await?;
    let changed = if chosen.all {
        all(&*store, &chosen.matching.into(), chosen.yes, fate).await
    } else {
        each(&*store, &chosen.event_ids, fate).await
    };
    store.close().await;
    let changed = changed?;
    for refused in &changed.refused {
        report::note(&format!("error: {}", refused.sentence()));
    }
    report::print_either(target.json, &changed.json(), || changed.text())?;
    Ok(if changed.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn all(store: &dyn Store, filter: &DeadFilter, yes: bool, fate: Fate) -> Result<Changed, Failure> {
    let dead = DeadEvents::of(store);
    let matching = dead.count(filter).await?;
    if matching == 0 {
        return Ok(Changed { fate, events: 0, refused: Vec::new() });
    }
    let about_to = match fate {
        Fate::Replay => format!("deliver {} again", counted(matching, "event")),
        Fate::Discard => format!("delete {} for good", counted(matching, "event")),
    };
    confirm(yes, &about_to)?;
    let bar = progress::bar(matching, fate.participle());
    let progress = |so_far| advance(&bar, so_far);
    let changed = match fate {
        Fate::Replay => dead.replay_all(filter, progress).await,
        Fate::Discard => dead.discard_all(filter, progress).await,
    };
    bar.finish_and_clear();
    Ok(Changed { fate, events: changed?, refused: Vec::new() })
}

/// More may have died since they were counted.
fn advance(bar: &ProgressBar, so_far: u64) {
    bar.set_length(bar.length().unwrap_or(0).max(so_far));
    bar.set_position(so_far);
}

async fn each(store: &dyn Store, event_ids: &[String], fate: Fate) -> Result<Changed, Failure> {
    let dead = DeadEvents::of(store);
    let mut changed = Changed { fate, events: 0, refused: Vec::new() };
    for event_id in event_ids {
        let done = match fate {
            Fate::Replay => dead.replay(event_id).await?,
            Fate::Discard => dead.discard(event_id).await?,
        };
        if done {
            changed.events += 1;
        } else {
            let status = dead.show(event_id).await?.map(|record| status_name(record.status));
            changed.refused.push(Refused { event_id: event_id.clone(), status });
        }
    }
    Ok(changed)
}

/// What a command has done.
#[derive(Debug)]
struct Changed {
    fate: Fate,
    events: u64,
    refused: Vec<Refused>,
}

/// An event that was not given up, and so was left alone.
#[derive(Debug, Serialize)]
struct Refused {
    event_id: String,
    /// Its state; null if there is no such event.
    status: Option<String>,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discarded: Option<u64>,
    refused: &'a [Refused],
}

impl Changed {
    fn json(&self) -> Json<'_> {
        let events = |fate| (self.fate == fate).then_some(self.events);
        Json { replayed: events(Fate::Replay), discarded: events(Fate::Discard), refused: &self.refused }
    }

    fn text(&self) -> String {
        let verb = if self.events == 1 { "was" } else { "were" };
        format!("{} {verb} {}", counted(self.events, "event"), self.fate.participle())
    }
}

impl Refused {
    fn sentence(&self) -> String {
        match &self.status {
            Some(status) => format!("event `{}` is {status}, not DEAD; it was left alone", self.event_id),
            None => format!("there is no event `{}` in this outbox", self.event_id),
        }
    }
}

impl Fate {
    fn participle(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }
}
