use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::store::{Pause, PauseKind};
use tokio::time::Instant;

use super::{Checker, Violation};

/// What operators have paused, each with the virtual time of it, and that of its end if it ends by itself.
#[derive(Debug, Default)]
pub(super) struct Paused(BTreeMap<(PauseKind, String), (Instant, Option<Instant>)>);

impl Paused {
    /// The time since which a call with an event of this type for this handler must not begin.
    fn since(&self, event_type: &str, handler: Option<&str>) -> Option<Duration> {
        let now = Instant::now();
        let names = [(PauseKind::Type, Some(event_type)), (PauseKind::Handler, handler)];
        let paused = names.into_iter().filter_map(|(kind, name)| self.0.get(&(kind, name?.to_owned())));
        let lasting = paused.filter(|(_, until)| until.is_none_or(|until| now < until));
        lasting.map(|(since, _)| now.duration_since(*since)).max()
    }
}

impl Checker {
    /// An operator has paused something. What is paused already stays so, unless it ends now.
    pub fn paused(&mut self, kind: PauseKind, name: &str, length: Option<Duration>) {
        let now = Instant::now();
        let paused = self.paused.0.entry((kind, name.to_owned())).or_insert((now, None));
        if paused.1.is_some_and(|until| until <= now) {
            paused.0 = now;
        }
        paused.1 = length.map(|length| now + length);
    }

    /// An operator has resumed something.
    pub fn resumed(&mut self, kind: PauseKind, name: &str) {
        self.paused.0.remove(&(kind, name.to_owned()));
    }

    /// The database went back, and these pauses are there now.
    pub fn paused_again(&mut self, pauses: Vec<Pause>) {
        let now = Instant::now();
        self.paused.0 = pauses.into_iter().map(|pause| ((pause.kind, pause.name), (now, None))).collect();
    }

    /// Checks that a node which reaches the database begins no call of what has been paused for so long that it has noticed.
    pub(super) fn check_pauses(&self, delivery: &Delivery, noticed_within: Duration) -> Result<(), Violation> {
        let paused = self.paused.since(delivery.event_type(), delivery.handler_id());
        match paused.filter(|since| *since > noticed_within) {
            Some(since) if !self.members.is_troubled(delivery.node()) => {
                let (node, seq, event_type) = (delivery.node(), delivery.seq(), delivery.event_type());
                let what = format!("{node} began a call of {event_type} (seq {seq}), which was paused {since:?} ago");
                Err(Violation::new("paused", what))
            }
            _ => Ok(()),
        }
    }
}
