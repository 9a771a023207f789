use pillarbox_core::handle::Outcome;
use pillarbox_core::row::{Change, Position};
use pillarbox_core::store::Row;
use pillarbox_core::throttle::Throttle;

use crate::settle::AttemptEnd;

/// Decides whether rows keep the positions that handlers report.
#[derive(Debug)]
pub(crate) struct Positions {
    keep: bool,
    /// The throttle of texts that are no positions, which are worth a line in the log, but not one for every event.
    complaints: Throttle,
}

impl Positions {
    pub(crate) fn new(keep: bool) -> Self {
        Self { keep, complaints: Throttle::default() }
    }

    /// The change after an attempt that has delivered its event; any other attempt is given back. Called for every event.
    #[inline]
    pub(super) fn delivered(&self, row: &Row, attempt: AttemptEnd) -> Result<Change, AttemptEnd> {
        match attempt {
            AttemptEnd::Ended(Ok(Outcome::Done)) => Ok(Change::Done),
            AttemptEnd::Ended(Ok(Outcome::DeliveredAs(text))) => Ok(self.delivered_as(row, text)),
            other => Err(other),
        }
    }

    /// The change of a row whose event is delivered, by the answer of its handler.
    pub(super) fn done(&self, row: &Row, outcome: Outcome) -> Change {
        match outcome {
            Outcome::DeliveredAs(text) => self.delivered_as(row, text),
            _ => Change::Done,
        }
    }

    fn delivered_as(&self, row: &Row, text: String) -> Change {
        if !self.keep {
            return Change::Done;
        }
        match Position::new(text) {
            Ok(position) => Change::DeliveredAs(position),
            // The event is delivered, whatever was said of it.
            Err(problem) => {
                if let Some(events) = self.complaints.report(1) {
                    let (event_id, event_type) = (row.event.id().as_str(), row.event.event_type());
                    tracing::warn!(event_id, event_type, events, error = %problem, "the position of a delivered event is not kept");
                }
                Change::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::row::NewRow;

    use super::*;

    #[test]
    fn a_position_is_kept_if_it_is_one_and_if_it_is_wanted() {
        let event = Envelope::builder("t").payload_json("{}").build().expect("valid");
        let row = Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0));
        let delivered = |keep, outcome| {
            let attempt = AttemptEnd::Ended(Ok(outcome));
            Positions::new(keep).delivered(&row, attempt).map_err(|attempt| format!("{attempt:?}"))
        };
        let kept = Change::DeliveredAs(Position::new("s/1").expect("a position"));
        assert_eq!(delivered(true, Outcome::delivered_as("s/1")), Ok(kept));
        assert_eq!(delivered(false, Outcome::delivered_as("s/1")), Ok(Change::Done));
        for text in [String::new(), "x".repeat(301), "a\nb".to_owned()] {
            assert_eq!(delivered(true, Outcome::delivered_as(text)), Ok(Change::Done));
        }
        assert_eq!(delivered(true, Outcome::Done), Ok(Change::Done));
        assert_eq!(delivered(true, Outcome::Dead("no".into())), Err("Ended(Ok(Dead(\"no\")))".to_owned()));
    }
}
