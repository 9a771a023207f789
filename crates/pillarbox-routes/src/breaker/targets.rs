use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Breaker;
use super::circuit::{Admission, CallResult, Circuit, Transition};

/// Parts of a destination that one route remembers as being in trouble.
const MAX_PARTS: usize = 1000;
/// The time that a part without any further event is remembered after its pause.
const RETENTION: Duration = Duration::from_secs(120);
/// The time between the returns of events that wait for one part, so that a million of them are not rewritten in every pause.
const RETURN_INTERVAL: Duration = Duration::from_millis(1);
/// The longest time between the end of a pause and the return of an event that waits for it.
const MAX_RETURN_DELAY: Duration = Duration::from_secs(600);

/// A part of a route's destination that can be in trouble by itself, where the target depends on the event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// All targets at one server.
    Server(Arc<str>),
    /// One target.
    Target(Arc<str>),
    /// One target, as it answers the events of one tenant.
    TargetOfTenant(Arc<str>, Box<str>),
}

/// The parts of a destination that a message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) server: Option<Part>,
    pub(crate) target: Part,
}

impl Parts {
    pub(crate) fn each(&self) -> impl Iterator<Item = &Part> {
        self.server.iter().chain([&self.target])
    }
}

/// The parts of one route's destination that are in trouble, each with a breaker of its own. Bounded: a part for which there is no place
/// has none, and [`Backoffs`](super::Backoffs) defer its events.
#[derive(Debug)]
pub(crate) struct Targets {
    breaker: Breaker,
    troubled: HashMap<Part, Troubled>,
}

#[derive(Debug)]
struct Troubled {
    circuit: Circuit,
    /// Events deferred since the pause began.
    waiting: u32,
    touched: Instant,
}

/// The change that a call has made for a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) transition: Transition,
    /// True if nothing was known against it before.
    pub(crate) is_new: bool,
}

impl Targets {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Self { breaker, troubled: HashMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.troubled.is_empty()
    }

    /// Decides whether a message may be sent now. A caller that is told to probe reports the [end](Self::ended) of the probe for each
    /// part, or [withdraws](Self::withdraw).
    pub(crate) fn admit(&mut self, parts: &Parts, now: Instant) -> Admission {
        let mut admission = Admission::Go;
        for part in parts.each() {
            let Some(troubled) = self.troubled.get_mut(part) else { continue };
            match troubled.circuit.admit(now) {
                Admission::Go => {}
                Admission::Probe => admission = Admission::Probe,
                Admission::Wait { until, problem } => {
                    troubled.touched = now;
                    troubled.waiting = troubled.waiting.saturating_add(1);
                    let until = until + RETURN_INTERVAL.saturating_mul(troubled.waiting).min(MAX_RETURN_DELAY);
                    if admission == Admission::Probe {
                        // The server may be tried out, and the target may not.
                        parts.server.iter().for_each(|server| self.withdraw(server));
                    }
                    return Admission::Wait { until, problem };
                }
            }
        }
        admission
    }

    /// Decides again about a message that was admitted and has waited since; `is_probe` says that it was to try its parts out, as it still is
    /// unless an earlier call has begun another pause.
    pub(crate) fn admit_again(&mut self, parts: &Parts, now: Instant, is_probe: bool) -> Admission {
        if is_probe && self.paused_until(parts).is_none_or(|until| until <= now) {
            return Admission::Probe;
        }
        self.admit(parts, now)
    }

    /// A call has ended that said something about a part.
    pub(crate) fn ended(&mut self, part: &Part, now: Instant, called: CallResult) -> Changed {
        let (is_well, is_new) = (called == CallResult::Well, !self.troubled.contains_key(part));
        if is_new && is_well {
            return Changed { transition: Transition::None, is_new: false };
        }
        if is_new && !self.make_room(part, now) {
            // Nothing tells if it was well before: to count it as new would pause the route for targets that fail again and again.
            return Changed { transition: Transition::None, is_new: false };
        }
        if is_new {
            let circuit = Circuit::new(self.breaker);
            self.troubled.insert(part.clone(), Troubled { circuit, waiting: 0, touched: now });
        }
        let transition = self.record(part, now, called);
        if is_well && self.paused(part).is_none() {
            self.troubled.remove(part);
        }
        Changed { transition, is_new }
    }

    fn record(&mut self, part: &Part, now: Instant, called: CallResult) -> Transition {
        let Some(troubled) = self.troubled.get_mut(part) else { return Transition::None };
        let before = troubled.circuit.paused().map(|(until, _)| until);
        let transition = troubled.circuit.ended(now, called);
        troubled.touched = now;
        if troubled.circuit.paused().map(|(until, _)| until) != before {
            troubled.waiting = 0;
        }
        transition
    }

    /// Gives up the probe of a part before it has ended.
    pub(crate) fn withdraw(&mut self, part: &Part) {
        if let Some(troubled) = self.troubled.get_mut(part) {
            troubled.circuit.withdraw();
        }
    }

    /// The end of the pause of a part, and its reason.
    pub(crate) fn paused(&self, part: &Part) -> Option<(Instant, Arc<str>)> {
        self.troubled.get(part).and_then(|troubled| troubled.circuit.paused())
    }

    /// The end of the pause of a message's parts, the later one if both are paused.
    pub(crate) fn paused_until(&self, parts: &Parts) -> Option<Instant> {
        parts.each().filter_map(|part| self.paused(part)).map(|(until, _)| until).max()
    }

    /// All paused parts, in no order.
    pub(crate) fn all_paused(&self) -> impl Iterator<Item = (&Part, Instant, Arc<str>)> {
        self.troubled.iter().filter_map(|(part, troubled)| {
            let (until, problem) = troubled.circuit.paused()?;
            Some((part, until, problem))
        })
    }

    /// Ends the pauses of some parts for now: each is tried out by the next message for it. False if none of them is paused, or all are
    /// being tried out already.
    pub(crate) fn probe_next(&mut self, now: Instant, is_one: impl Fn(&Part) -> bool) -> bool {
        let paused = self.troubled.iter_mut().filter(|(part, _)| is_one(part));
        paused.fold(false, |any, (_, troubled)| troubled.circuit.probe_next(now) || any)
    }

    /// Forgets parts that no event has needed for a while.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.troubled.retain(|_, troubled| now < troubled.last() + RETENTION);
    }

    /// Makes room for one more part, by forgetting old ones where all places are taken; false if there is none. Servers find one where targets
    /// have taken all of theirs, since a server stands for many targets.
    fn make_room(&mut self, part: &Part, now: Instant) -> bool {
        let most = match part {
            Part::Server(_) => 2 * MAX_PARTS,
            Part::Target(_) | Part::TargetOfTenant(..) => MAX_PARTS,
        };
        if self.troubled.len() >= most {
            self.forget(now);
        }
        self.troubled.len() < most
    }
}

impl Troubled {
    /// The time at which an event needed it last, or the end of its pause if that is later.
    fn last(&self) -> Instant {
        self.circuit.paused().map_or(self.touched, |(until, _)| until.max(self.touched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: Breaker = Breaker { failures: 2, pause: Duration::from_secs(1), max_pause: Duration::from_secs(4) };

    fn refused(after: Option<u64>) -> CallResult {
        CallResult::Refused { problem: "away".into(), after: after.map(Duration::from_secs) }
    }

    fn parts(server: &str, target: &str) -> Parts {
        Parts { server: Some(Part::Server(server.into())), target: Part::Target(target.into()) }
    }

    fn until(admission: &Admission) -> Instant {
        let Admission::Wait { until, .. } = admission else { panic!("it has to wait, not {admission:?}") };
        *until
    }

    #[test]
    fn a_paused_target_holds_up_no_other() {
        let start = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let (ill, well) = (parts("s", "s/a"), parts("s", "s/b"));
        let changed = targets.ended(&ill.target, start, refused(Some(3600)));
        assert_eq!(
            changed,
            Changed { transition: Transition::Paused { pause: Duration::from_secs(3600) }, is_new: true }
        );
        assert_eq!(targets.admit(&well, start), Admission::Go);
        let wait = until(&targets.admit(&ill, start));
        assert!((3600..3601).contains(&(wait - start).as_secs()), "{:?}", wait - start);
        let now = start + Duration::from_secs(3600);
        assert_eq!(targets.admit(&ill, now), Admission::Probe);
        assert!(matches!(targets.admit(&ill, now), Admission::Wait { .. }), "one tries it out");
        assert_eq!(targets.ended(&ill.target, now, CallResult::Well).transition, Transition::Resumed);
        assert!(targets.is_empty() && targets.admit(&ill, now) == Admission::Go);
    }

    #[test]
    fn a_message_that_has_waited_is_decided_about_again() {
        let start = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let ill = parts("s", "s/a");
        assert_eq!(targets.admit_again(&ill, start, false), Admission::Go);
        targets.ended(&ill.target, start, refused(None));
        assert!(matches!(targets.admit_again(&ill, start, false), Admission::Wait { .. }), "it was paused meanwhile");
        let now = start + Duration::from_secs(1);
        assert_eq!(targets.admit(&ill, now), Admission::Probe);
        assert_eq!(targets.admit_again(&ill, now, true), Admission::Probe, "it still tries it out");
        assert!(matches!(targets.admit_again(&ill, now, false), Admission::Wait { .. }), "another does");
        targets.ended(&Part::Server("s".into()), now, refused(None));
        assert!(matches!(targets.admit_again(&ill, now, true), Admission::Wait { .. }), "its server is paused");
    }

    #[test]
    fn a_pause_is_ended_by_an_operator_for_one_try() {
        let now = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let (ill, other) = (parts("s", "s/a"), parts("s", "s/b"));
        assert!(!targets.probe_next(now, |part| *part == ill.target), "it is not paused");
        for part in [&ill, &other] {
            targets.ended(&part.target, now, refused(Some(3600)));
        }
        assert!(targets.probe_next(now, |part| *part == ill.target));
        assert_eq!(targets.admit(&ill, now), Admission::Probe);
        assert!(!targets.probe_next(now, |part| *part == ill.target), "it is being tried out");
        assert!(matches!(targets.admit(&other, now), Admission::Wait { .. }));
    }

    #[test]
    fn a_paused_server_holds_up_all_its_targets() {
        let now = Instant::now();
        let mut targets = Targets::new(BREAKER);
        targets.ended(&Part::Server("s".into()), now, refused(None));
        assert!(matches!(targets.admit(&parts("s", "s/a"), now), Admission::Wait { .. }));
        assert_eq!(targets.admit(&parts("t", "t/a"), now), Admission::Go);
    }

    #[test]
    fn a_target_that_has_to_wait_gives_the_probe_of_its_server_back() {
        let start = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let (ill, other) = (parts("s", "s/a"), parts("s", "s/b"));
        targets.ended(&Part::Server("s".into()), start, refused(None));
        targets.ended(&ill.target, start, refused(Some(60)));
        let now = start + Duration::from_secs(1);
        assert!(matches!(targets.admit(&ill, now), Admission::Wait { .. }));
        assert_eq!(targets.admit(&other, now), Admission::Probe);
    }

    #[test]
    fn many_that_wait_for_one_target_come_back_one_after_the_other() {
        let start = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let ill = parts("s", "s/a");
        targets.ended(&ill.target, start, refused(None));
        let first = until(&targets.admit(&ill, start));
        let last = (1..5000).map(|_| until(&targets.admit(&ill, start))).max().expect("some");
        assert_eq!(last - first, 4999 * RETURN_INTERVAL);
        let probe = start + Duration::from_secs(1);
        assert_eq!(targets.admit(&ill, probe), Admission::Probe);
        targets.ended(&ill.target, probe, refused(None));
        assert_eq!(
            until(&targets.admit(&ill, probe)),
            probe + Duration::from_secs(2) + RETURN_INTERVAL,
            "counted anew"
        );
    }

    #[test]
    fn remembered_targets_are_bounded_and_expire() {
        let start = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let target = |number: usize| parts("s", &format!("s/{number}"));
        for number in 0..2 * MAX_PARTS {
            let changed = targets.ended(&target(number).target, start, refused(None));
            assert_eq!(changed.is_new, number < MAX_PARTS, "{number}");
            assert_eq!(changed.transition == Transition::None, number >= MAX_PARTS, "{number}");
        }
        assert_eq!(targets.troubled.len(), MAX_PARTS);
        assert!(matches!(targets.admit(&target(0), start), Admission::Wait { .. }), "the first stay");
        assert_eq!(targets.admit(&target(MAX_PARTS), start), Admission::Go, "there was no place for it");
        let server = Part::Server("s".into());
        assert!(targets.ended(&server, start, refused(None)).is_new, "a server has one");
        assert!(matches!(targets.admit(&target(MAX_PARTS), start), Admission::Wait { .. }), "of a paused server");
        let later = start + 2 * RETENTION;
        assert!(targets.ended(&target(MAX_PARTS).target, later, refused(None)).is_new, "the others are forgotten");
        targets.forget(later + 2 * RETENTION);
        assert!(targets.is_empty());
    }

    #[test]
    fn declined_messages_pause_a_target_only_in_a_row() {
        let now = Instant::now();
        let mut targets = Targets::new(BREAKER);
        let part = Part::Target("a".into());
        let declined = || CallResult::Declined { problem: "500".into() };
        assert_eq!(targets.ended(&part, now, declined()), Changed { transition: Transition::None, is_new: true });
        assert_eq!(
            targets.ended(&part, now, CallResult::Well),
            Changed { transition: Transition::None, is_new: false }
        );
        targets.ended(&part, now, declined());
        assert_eq!(targets.ended(&part, now, declined()).transition, Transition::Paused { pause: BREAKER.pause });
    }
}
