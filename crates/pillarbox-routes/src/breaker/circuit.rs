use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The conditions under which a route is paused, and the length of its pauses.
///
/// A route is paused as soon as its destination cannot be reached, does not answer in time, refuses everything or asks for a
/// pause, and after `failures` calls in a row of which no message was taken. Then nothing is sent but, at the end of each pause,
/// one batch, to see whether it is taken again. Pauses begin with `pause` and double up to `max_pause`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Calls in a row that fail, all of whose messages the destination declined one by one. Default: 5.
    pub failures: u32,
    /// The first pause. Default: 500 ms.
    pub pause: Duration,
    /// The longest pause. Default: 30 s.
    pub max_pause: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_millis(500), max_pause: Duration::from_secs(30) }
    }
}

/// The time after a pause in which events have the first turn at trying the destination out, since they show more than a check.
/// An event that was deferred comes back up to a tenth of the pause later than its end.
const EVENT_PROBE_WINDOW: Duration = Duration::from_secs(2);

/// The state of a route's breaker. Pure: it is told the time, and what happened.
#[derive(Debug)]
pub(crate) struct Circuit {
    breaker: Breaker,
    state: State,
}

#[derive(Debug)]
enum State {
    /// `pause`: the length of the last one, if no message was taken since.
    Closed { failures: u32, pause: Option<Duration> },
    /// `unasked`: the time from which on it is probed without an event.
    Open { until: Instant, unasked: Instant, pause: Duration, problem: Arc<str>, probing: bool },
}

/// The decision whether a batch may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    Go,
    /// As a probe. The caller reports its [end](Circuit::ended), or [withdraws](Circuit::withdraw).
    Probe,
    /// Not before.
    Wait {
        until: Instant,
        problem: Arc<str>,
    },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallResult {
    /// At least one message was taken, or none was to blame.
    Well,
    /// The destination answers a check: it may take messages, and none was sent.
    Answered,
    /// Every message was declined, each for itself.
    Declined { problem: Arc<str> },
    /// The destination is to blame, which may have said when to come back.
    Refused { problem: Arc<str>, after: Option<Duration> },
    /// The destination took messages, and asks for a pause before the next ones.
    PauseRequested { problem: Arc<str>, after: Duration },
}

/// The change of a breaker's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transition {
    None,
    Paused {
        pause: Duration,
    },
    /// It was tried out in vain, for another reason than the last time.
    StillPaused {
        pause: Duration,
    },
    Resumed,
}

impl Circuit {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Self { breaker, state: State::Closed { failures: 0, pause: None } }
    }

    pub(crate) fn admit(&mut self, now: Instant) -> Admission {
        match &mut self.state {
            State::Closed { .. } => Admission::Go,
            State::Open { until, probing, .. } if now >= *until && !*probing => {
                *probing = true;
                Admission::Probe
            }
            State::Open { until, pause, problem, .. } => {
                // While it is being tried out, what comes waits for the outcome.
                let until = if now >= *until { now + (*pause).min(Breaker::default().pause) } else { *until };
                Admission::Wait { until, problem: Arc::clone(problem) }
            }
        }
    }

    /// Decides again about a batch that was admitted and has waited since; `is_probe` says that it was to try the destination out, as it
    /// still is unless an earlier call has begun another pause.
    pub(crate) fn admit_again(&mut self, now: Instant, is_probe: bool) -> Admission {
        match &self.state {
            State::Open { until, probing: true, .. } if is_probe && now >= *until => Admission::Probe,
            _ => self.admit(now),
        }
    }

    /// True if the destination is to be tried out without an event, since none has done so for a while after the pause. The
    /// caller then says how the try [ended](Circuit::ended), or [withdraws](Circuit::withdraw).
    pub(crate) fn probe_unasked(&mut self, now: Instant) -> bool {
        match &mut self.state {
            State::Open { unasked, probing, .. } if now >= *unasked && !*probing => {
                *probing = true;
                true
            }
            _ => false,
        }
    }

    /// Ends the pause for now: the destination is tried out next. False if it is not paused, or is being tried out already.
    pub(crate) fn probe_next(&mut self, now: Instant) -> bool {
        match &mut self.state {
            State::Open { until, unasked, probing: false, .. } => {
                (*until, *unasked) = (now.min(*until), now.min(*unasked));
                true
            }
            _ => false,
        }
    }

    /// A call has ended that was admitted.
    pub(crate) fn ended(&mut self, now: Instant, called: CallResult) -> Transition {
        match (&mut self.state, called) {
            (State::Closed { failures, pause }, CallResult::Well) => {
                (*failures, *pause) = (0, None);
                Transition::None
            }
            (State::Closed { .. }, CallResult::Answered) => Transition::None,
            (State::Open { probing: true, .. }, CallResult::Well) => {
                self.state = State::Closed { failures: 0, pause: None };
                Transition::Resumed
            }
            // An answer is no proof: should the next call fail, the pauses go on where they were.
            (State::Open { probing: true, pause, .. }, CallResult::Answered) => {
                self.state = State::Closed { failures: 0, pause: Some(*pause) };
                Transition::Resumed
            }
            // One that began before the pause says nothing about what is now.
            (State::Open { probing: false, .. }, _) => Transition::None,
            (State::Closed { failures, .. }, CallResult::Declined { .. }) if *failures + 1 < self.breaker.failures => {
                *failures += 1;
                Transition::None
            }
            (_, CallResult::Declined { problem }) => self.pause(now, problem, self.longer(), None),
            (_, CallResult::Refused { problem, after }) => self.pause(now, problem, self.longer(), after),
            // It takes messages: its pauses do not grow.
            (_, CallResult::PauseRequested { problem, after }) => {
                self.pause(now, problem, self.breaker.pause, Some(after))
            }
        }
    }

    /// The one that was to try it out was given up before it ended.
    pub(crate) fn withdraw(&mut self) {
        if let State::Open { probing, .. } = &mut self.state {
            *probing = false;
        }
    }

    /// The pause that follows the last one.
    fn longer(&self) -> Duration {
        let last = match &self.state {
            State::Closed { pause, .. } => *pause,
            State::Open { pause, .. } => Some(*pause),
        };
        last.map_or(self.breaker.pause, |last| last.saturating_mul(2)).min(self.breaker.max_pause)
    }

    fn pause(&mut self, now: Instant, problem: Arc<str>, pause: Duration, after: Option<Duration>) -> Transition {
        // The pause that the destination asks for holds, up to an hour.
        let asked = after.unwrap_or_default().min(Duration::from_secs(3600));
        let length = pause.max(asked);
        let transition = match &self.state {
            State::Closed { .. } => Transition::Paused { pause: length },
            State::Open { problem: before, .. } if *before != problem => Transition::StillPaused { pause: length },
            State::Open { .. } => Transition::None,
        };
        let until = now + length;
        let unasked = until + length / 10 + EVENT_PROBE_WINDOW;
        self.state = State::Open { until, unasked, pause, problem, probing: false };
        transition
    }

    /// The end of the pause, and its reason.
    pub(crate) fn paused(&self) -> Option<(Instant, Arc<str>)> {
        match &self.state {
            State::Closed { .. } => None,
            State::Open { until, problem, .. } => Some((*until, Arc::clone(problem))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: Breaker = Breaker { failures: 3, pause: Duration::from_secs(1), max_pause: Duration::from_secs(4) };

    fn refused(after: Option<u64>) -> CallResult {
        CallResult::Refused { problem: "away".into(), after: after.map(Duration::from_secs) }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_destination_that_refuses_is_tried_out_after_ever_longer_pauses() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        assert_eq!(circuit.admit(start), Admission::Go);
        assert_eq!(circuit.ended(start, refused(None)), Transition::Paused { pause: seconds(1) });
        let mut now = start;
        for pause in [1, 2, 4, 4] {
            let wait = Admission::Wait { until: now + seconds(pause), problem: "away".into() };
            assert_eq!(circuit.admit(now), wait);
            now += seconds(pause);
            assert_eq!(circuit.admit(now), Admission::Probe);
            assert!(matches!(circuit.admit(now), Admission::Wait { .. }), "only one tries it out");
            assert_eq!(circuit.ended(now, refused(None)), Transition::None);
        }
        now += seconds(4);
        assert_eq!(circuit.admit(now), Admission::Probe);
        assert_eq!(circuit.ended(now, CallResult::Well), Transition::Resumed);
        assert_eq!((circuit.admit(now), circuit.paused()), (Admission::Go, None));
        assert_eq!(circuit.ended(now, refused(None)), Transition::Paused { pause: seconds(1) }, "pauses begin anew");
    }

    #[test]
    fn a_batch_that_has_waited_is_decided_about_again() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        assert_eq!(circuit.admit_again(start, false), Admission::Go);
        circuit.ended(start, refused(None));
        assert!(matches!(circuit.admit_again(start, false), Admission::Wait { .. }), "it was paused meanwhile");
        let now = start + seconds(1);
        assert_eq!(circuit.admit(now), Admission::Probe);
        assert_eq!(circuit.admit_again(now + seconds(1), true), Admission::Probe, "it still tries it out");
        assert!(matches!(circuit.admit_again(now + seconds(1), false), Admission::Wait { .. }), "another does");
        // A call from before the pause has ended.
        circuit.ended(now, refused(None));
        assert!(matches!(circuit.admit_again(now, true), Admission::Wait { .. }), "it was paused anew");
        assert_eq!(circuit.admit_again(now + seconds(2), false), Admission::Probe, "that pause is over too");
    }

    #[test]
    fn another_problem_is_told_once() {
        let now = Instant::now();
        let because = |problem: &str| CallResult::Refused { problem: problem.into(), after: None };
        let mut circuit = Circuit::new(BREAKER);
        circuit.ended(now, because("connection refused"));
        for (seconds_later, problem, transition) in [
            (1, "connection refused", Transition::None),
            (4, "no such queue", Transition::StillPaused { pause: seconds(4) }),
            (9, "no such queue", Transition::None),
        ] {
            assert_eq!(circuit.admit(now + seconds(seconds_later)), Admission::Probe);
            assert_eq!(circuit.ended(now + seconds(seconds_later), because(problem)), transition);
        }
    }

    #[test]
    fn pauses_that_the_destination_asks_for_hold() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        assert_eq!(circuit.ended(start, refused(Some(60))), Transition::Paused { pause: seconds(60) });
        assert!(matches!(circuit.admit(start + seconds(59)), Admission::Wait { .. }));
        assert_eq!(circuit.admit(start + seconds(60)), Admission::Probe);
    }

    #[test]
    fn a_destination_that_takes_messages_and_asks_for_a_pause_is_left_alone_for_no_longer() {
        let asked = |after| CallResult::PauseRequested { problem: "slow down".into(), after: seconds(after) };
        let (mut now, mut circuit) = (Instant::now(), Circuit::new(BREAKER));
        assert_eq!(circuit.ended(now, asked(2)), Transition::Paused { pause: seconds(2) });
        for (asks, pause) in [(2, 2), (2, 2), (0, 1), (7200, 3600)] {
            now = circuit.paused().expect("paused").0;
            assert_eq!(circuit.admit(now), Admission::Probe);
            assert_eq!(circuit.ended(now, asked(asks)), Transition::None);
            assert_eq!(circuit.paused().map(|(until, _)| until), Some(now + seconds(pause)), "{asks}");
        }
        now += seconds(3600);
        assert_eq!(circuit.admit(now), Admission::Probe);
        circuit.ended(now, refused(None));
        assert_eq!(circuit.paused().map(|(until, _)| until), Some(now + seconds(2)), "they grow from the first one");
    }

    #[test]
    fn declined_messages_pause_only_in_a_row() {
        let now = Instant::now();
        let declined = || CallResult::Declined { problem: "500".into() };
        let mut circuit = Circuit::new(BREAKER);
        for called in [declined(), declined(), CallResult::Well, declined(), declined()] {
            assert_eq!(circuit.ended(now, called), Transition::None);
        }
        assert_eq!(circuit.ended(now, declined()), Transition::Paused { pause: seconds(1) });
    }

    #[test]
    fn calls_sent_before_the_pause_neither_end_nor_prolong_it() {
        let now = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        circuit.ended(now, refused(None));
        for late in [CallResult::Well, refused(None)] {
            assert_eq!(circuit.ended(now, late), Transition::None);
            assert_eq!(circuit.paused().map(|(until, _)| until), Some(now + seconds(1)));
        }
    }

    #[test]
    fn without_an_event_a_check_tries_it_out_and_proves_less() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        assert!(!circuit.probe_unasked(start), "it is not paused");
        circuit.ended(start, refused(None));
        assert!(!circuit.probe_unasked(start + seconds(3)), "events have the first turn, and may be late by a tenth");
        let now = start + seconds(4);
        assert!(circuit.probe_unasked(now) && !circuit.probe_unasked(now), "one at a time");
        assert!(matches!(circuit.admit(now), Admission::Wait { .. }), "events wait for the outcome");
        assert_eq!(circuit.ended(now, CallResult::Answered), Transition::Resumed);
        assert_eq!((circuit.admit(now), circuit.paused()), (Admission::Go, None));
        assert_eq!(
            circuit.ended(now, refused(None)),
            Transition::Paused { pause: seconds(2) },
            "they go on where they were"
        );
        assert!(circuit.probe_unasked(now + seconds(5)));
        circuit.ended(now, CallResult::Answered);
        assert_eq!(circuit.ended(now, CallResult::Well), Transition::None);
        assert_eq!(circuit.ended(now, refused(None)), Transition::Paused { pause: seconds(1) }, "a message was taken");
    }

    #[test]
    fn an_operator_ends_a_pause_for_one_try() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        assert!(!circuit.probe_next(start), "it is not paused");
        circuit.ended(start, refused(None));
        assert!(circuit.probe_next(start) && circuit.probe_unasked(start), "before its time");
        assert!(!circuit.probe_next(start), "it is being tried out");
        assert!(matches!(circuit.ended(start, refused(None)), Transition::None | Transition::StillPaused { .. }));
        assert!(!circuit.probe_unasked(start), "it is paused as before");
    }

    #[test]
    fn one_that_is_given_up_lets_the_next_try() {
        let start = Instant::now();
        let mut circuit = Circuit::new(BREAKER);
        circuit.ended(start, refused(None));
        let now = start + seconds(1);
        assert_eq!(circuit.admit(now), Admission::Probe);
        circuit.withdraw();
        assert_eq!(circuit.admit(now), Admission::Probe);
    }
}
