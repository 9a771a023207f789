use std::collections::BTreeMap;

use super::{Checker, Line, Violation};

/// The effects of handlers that work in a transaction: the events that each has written for an event, by event and handler.
#[derive(Debug, Default)]
pub(super) struct Effects(BTreeMap<(u32, u8), u32>);

impl Effects {
    /// The database went back: it lost the effects of what is not DONE any more, which are returned.
    pub(super) fn went_back(&mut self, not_done: impl Iterator<Item = (u32, u8)>) -> Vec<(u32, u8)> {
        not_done.filter(|row| self.0.remove(row).is_some()).collect()
    }
}

impl Checker {
    /// Checks that the effects which a transaction commits are the first of their events, which are DONE with them.
    pub(super) fn check_effects(&mut self, rows: &[(i64, u32, u8)]) -> Result<(), Violation> {
        for (_, effect, _) in rows {
            let Some(source) = self.events.get(*effect as usize).and_then(|event| event.of) else { continue };
            let times = self.effects.0.entry(source).or_default();
            *times += 1;
            let (event, handler) = source;
            if *times > 1 {
                let what =
                    format!("the handler {handler} of e{event} has had its effect {times} times, now by e{effect}");
                return Err(Violation::new("exactly once", what));
            }
            let is_source = |line: &&Line| (line.event, line.handler) == source && line.status.is_pending();
            if self.ledger.lines().iter().any(|line| is_source(&line)) {
                let what = format!("the effect of e{event}/{handler} is committed, and the event is still pending");
                return Err(Violation::new("exactly once", what));
            }
        }
        Ok(())
    }
}
