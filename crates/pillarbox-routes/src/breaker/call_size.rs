/// From this size on there is no limit any more: no call has so many messages.
const MAX_LIMITED: usize = 16_384;

/// A call that was met by silence is followed by one of this part of its size.
const SHRINK: usize = 8;

/// The answered calls of one size after which a size is tried again that was met by silence before.
const CALLS_BEFORE_RETRY: u32 = 64;

/// The number of messages that a call of a destination may have. Unlimited until a call is met by silence: it may have been more than the
/// way to the destination carries in the time of a call, and would be so again and again. Pure: it is told what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSize {
    most: usize,
    /// The last size that was met by silence, where smaller calls are answered.
    too_much: Option<usize>,
    /// Answered calls of the present size.
    answered: u32,
}

impl CallSize {
    pub(crate) fn unlimited() -> Self {
        Self { most: usize::MAX, too_much: None, answered: 0 }
    }

    /// The most messages of the next call.
    pub(crate) fn most(self) -> usize {
        self.most
    }

    /// No message of a call of so many was answered in time.
    pub(crate) fn note_silence(&mut self, sent: usize) {
        // If a single message is not answered either, their number is not the reason.
        self.too_much = (sent > 1).then_some(sent);
        self.most = self.most.min((sent / SHRINK).max(1));
        self.answered = 0;
    }

    /// Of a call of so many messages, some were answered.
    pub(crate) fn note_answer(&mut self, sent: usize) {
        // A smaller call says nothing about one of this size.
        if self.most == usize::MAX || sent < self.most {
            return;
        }
        self.answered += 1;
        let twice = self.most.saturating_mul(2);
        if self.too_much.is_some_and(|size| twice >= size) {
            if self.answered < CALLS_BEFORE_RETRY {
                return;
            }
            self.too_much = None;
        }
        let most = if twice > MAX_LIMITED { usize::MAX } else { twice };
        *self = Self { most, answered: 0, ..*self };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_smaller_after_each_silence_and_grow_with_each_answer() {
        let mut size = CallSize::unlimited();
        size.note_answer(256);
        assert_eq!(size, CallSize::unlimited());
        for (sent, most) in [(256, 32), (32, 4), (4, 1), (1, 1)] {
            size.note_silence(sent);
            assert_eq!(size.most(), most);
        }
        for (sent, most) in [(1, 2), (2, 4), (3, 4), (4, 8)] {
            size.note_answer(sent);
            assert_eq!(size.most(), most, "one of less than the limit shows nothing");
        }
        size.note_silence(256);
        assert_eq!(size.most(), 8, "of an earlier call, which was larger");
    }

    #[test]
    fn a_size_that_was_too_much_is_tried_again_after_many_calls() {
        let mut size = CallSize::unlimited();
        size.note_silence(64);
        for (sent, most) in [(8, 16), (16, 32)] {
            size.note_answer(sent);
            assert_eq!(size.most(), most);
        }
        let mut calls = 0;
        while size.most() == 32 {
            size.note_answer(32);
            calls += 1;
        }
        assert_eq!((calls, size.most()), (CALLS_BEFORE_RETRY, 64));
        while size.most() < usize::MAX {
            size.note_answer(size.most());
            calls += 1;
        }
        assert_eq!(calls, CALLS_BEFORE_RETRY + 9, "the way carries all again");
    }
}
