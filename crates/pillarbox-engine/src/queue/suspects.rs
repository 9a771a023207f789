use pillarbox_core::ownership::PriorAttempt;

/// The rows that are suspected of having killed the owner before: the first ones that are read, as many as that owner can have had in
/// memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Suspects {
    /// The number of rows still to be suspected.
    pub(crate) left: usize,
    /// The highest `seq` when the rows were taken over: the owner before cannot have had later ones.
    pub(crate) up_to: i64,
}

impl Suspects {
    /// Counts a row that was read, and returns its prior attempt; `prior` is the one that the row itself records.
    pub(crate) fn check(&mut self, seq: i64, prior: PriorAttempt) -> PriorAttempt {
        if self.left == 0 || seq > self.up_to {
            return prior;
        }
        self.left -= 1;
        if prior == PriorAttempt::Clean { PriorAttempt::Suspect } else { prior }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PriorAttempt::{Clean, Crashed, Suspect};

    #[test]
    fn the_first_rows_that_the_dead_owner_can_have_had_are_suspected() {
        for (left, up_to, seq, prior, judged, still_left) in [
            (2, 10, 10, Clean, Suspect, 1),
            (2, 10, 11, Clean, Clean, 2),
            (0, 10, 10, Clean, Clean, 0),
            (2, 10, 10, Crashed, Crashed, 1),
            (2, 10, 10, Suspect, Suspect, 1),
            (2, 10, 11, Crashed, Crashed, 2),
        ] {
            let mut suspects = Suspects { left, up_to };
            assert_eq!(suspects.check(seq, prior), judged, "{seq} of {left} up to {up_to}, {prior:?}");
            assert_eq!(suspects, Suspects { left: still_left, up_to });
        }
    }
}
