use std::collections::BTreeMap;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{NewPause, Pause, PauseChange, PauseKind};

/// The table of pauses.
#[derive(Debug, Clone, Default)]
pub(super) struct Pauses(BTreeMap<(PauseKind, String), Pause>);

impl Pauses {
    pub(super) fn pause(&mut self, new: &NewPause, now: Timestamp) -> PauseChange {
        self.0.retain(|_, pause| lasts(pause, now));
        let NewPause { kind, name, by, reason, length } = new.clone();
        let known = self.0.get(&(kind, name.clone())).map(|pause| pause.since);
        if known.is_none() && self.0.len() >= Pause::MAX_PAUSES {
            return PauseChange::TooMany;
        }
        let (since, until) = (known.unwrap_or(now), length.map(|length| now.plus(length)));
        self.0.insert((kind, name.clone()), Pause { kind, name, since, until, by, reason });
        if known.is_some() { PauseChange::Updated } else { PauseChange::Paused }
    }

    pub(super) fn resume(&mut self, kind: PauseKind, name: &str, now: Timestamp) -> bool {
        self.0.remove(&(kind, name.to_owned())).is_some_and(|pause| lasts(&pause, now))
    }

    /// The pauses that have not ended.
    pub(super) fn list(&self, now: Timestamp) -> Vec<Pause> {
        self.0.values().filter(|pause| lasts(pause, now)).cloned().collect()
    }
}

fn lasts(pause: &Pause, now: Timestamp) -> bool {
    pause.until.is_none_or(|until| until > now)
}
