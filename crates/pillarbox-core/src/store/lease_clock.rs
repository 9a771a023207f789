use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::NodeStatus;
use crate::clock::Timestamp;

/// The lease to assume if no node states the length of its own.
pub(super) const USUAL_LEASE: Duration = Duration::from_secs(15);
/// An old anchor is kept no longer than this.
const LONGEST_HOLD: Duration = Duration::from_secs(86_400);
/// The tolerance is this share of the shortest lease: half of the margin with which an owner stops before its lease ends.
const TOLERANCE: u32 = 20;

/// Judges whether the leases of nodes have ended, by the database's clock and by the monotonic clock of this process.
///
/// A lease ends at a time of day by the database's clock. If that clock jumps forward, the leases of living nodes seem to have ended,
/// and a node that takes over then delivers beside their owners. So each look at the nodes leaves an *anchor*: the time that the database
/// showed, and the moment at which it was asked by the monotonic clock. From then on, the database's clock is believed up to a
/// *bound*:
///
/// ```text
///   bound  =  anchor's time + time since the anchor + a twentieth of the shortest lease
///   ended  =  expires_at ≤ the database's time, and expires_at ≤ bound
/// ```
///
/// A time beyond the bound is a jump. The old anchor is then kept for the longest lease, so that every living node has renewed under
/// the new time, and the leases of those that died before end when they would have ended. After that, the anchor moves to the new
/// time. An earlier time than expected moves the anchor at once: a lease that lives on for that is [watched] by its renewals.
///
/// A store keeps one for all of its connections, and asks it in the transaction in which it evicts nodes.
///
/// [watched]: super::Store::evict
#[derive(Debug, Default)]
pub struct LeaseClock {
    state: Mutex<State>,
}

/// The nodes of a table, divided by a [`LeaseClock`] into those whose lease has ended and the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodesByLease {
    /// The nodes whose lease has ended.
    pub ended: Vec<NodeStatus>,
    /// All others, in the order in which they came.
    pub alive: Vec<NodeStatus>,
    /// The time until the next lease ends that has ended by the database's clock alone.
    pub spared_for: Option<Duration>,
}

impl NodesByLease {
    /// The time until the next lease ends, if it does in `found` by the database's clock alone.
    #[must_use]
    pub fn next_expiry(&self, found: Option<Duration>) -> Option<Duration> {
        found.into_iter().chain(self.spared_for).min()
    }
}

#[derive(Debug, Default)]
struct State {
    anchor: Option<Anchor>,
    jump: Option<Jump>,
}

/// The time that the database showed at some moment after it was asked.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    time: Timestamp,
    asked: Instant,
}

/// A jump of the database's clock that is not believed yet.
#[derive(Debug, Clone, Copy)]
struct Jump {
    anchor: Anchor,
    until: Instant,
}

/// A look at the nodes: the time that the database showed, the moment of asking, and the leases.
#[derive(Debug, Clone, Copy)]
struct Look {
    seen: Anchor,
    answered: Instant,
    shortest: Duration,
    longest: Duration,
}

impl Look {
    fn tolerance(&self) -> Duration {
        self.shortest / TOLERANCE
    }
}

impl Anchor {
    /// The latest time that an undisturbed clock shows at this moment.
    fn at(&self, moment: Instant) -> Timestamp {
        self.time.plus(moment.saturating_duration_since(self.asked))
    }

    /// The anchor after a look that agrees with this one. An answer that took long says little about the time, unless it says more
    /// than the anchor did.
    fn moved(self, look: &Look) -> Self {
        let is_quick = look.answered.saturating_duration_since(look.seen.asked) <= look.tolerance() / 2;
        if is_quick || look.seen.at(look.answered) <= self.at(look.answered) { look.seen } else { self }
    }
}

impl State {
    /// Notes a look. Returns the length of a jump of the clock, if this look is the first to show it.
    fn observe(&mut self, look: &Look) -> Option<Duration> {
        let Some(anchor) = self.anchor else {
            self.anchor = Some(look.seen);
            return None;
        };
        let agrees = |anchor: &Anchor| look.seen.time <= anchor.at(look.answered).plus(look.tolerance());
        if agrees(&anchor) {
            *self = Self { anchor: Some(anchor.moved(look)), jump: None };
            return None;
        }
        match self.jump.filter(|jump| agrees(&jump.anchor)) {
            Some(jump) if look.answered >= jump.until => {
                *self = Self { anchor: Some(jump.anchor.moved(look)), jump: None };
                None
            }
            Some(jump) => {
                self.jump = Some(Jump { anchor: jump.anchor.moved(look), ..jump });
                None
            }
            None => {
                self.jump = Some(Jump { anchor: look.seen, until: look.answered + look.longest.min(LONGEST_HOLD) });
                Some(look.seen.time.since(anchor.at(look.answered)))
            }
        }
    }

    /// The time up to which the database's clock is believed at the moment of the look.
    fn bound(&self, look: &Look) -> Option<Timestamp> {
        self.anchor.map(|anchor| anchor.at(look.seen.asked).plus(look.tolerance()))
    }
}

impl LeaseClock {
    /// Notes the nodes and the database's time, as they were at some moment since `asked`.
    pub fn observe(&self, nodes: &[NodeStatus], now: Timestamp, asked: Instant) {
        self.look(nodes, now, asked, Instant::now());
    }

    /// Does the same, and tells the nodes whose lease has ended from the others.
    #[must_use]
    pub fn judge(&self, nodes: Vec<NodeStatus>, now: Timestamp, asked: Instant) -> NodesByLease {
        let bound = self.look(&nodes, now, asked, Instant::now()).unwrap_or(now);
        let mut judged = NodesByLease::default();
        for node in nodes {
            if node.expires_at <= now.min(bound) {
                judged.ended.push(node);
                continue;
            }
            if node.expires_at <= now {
                let left = node.expires_at.since(bound);
                judged.spared_for = Some(judged.spared_for.map_or(left, |spared| spared.min(left)));
            }
            judged.alive.push(node);
        }
        judged
    }

    fn look(&self, nodes: &[NodeStatus], now: Timestamp, asked: Instant, answered: Instant) -> Option<Timestamp> {
        let leases = || nodes.iter().filter_map(|node| node.lease);
        let look = Look {
            seen: Anchor { time: now, asked },
            answered,
            shortest: leases().min().unwrap_or(USUAL_LEASE),
            longest: leases().max().unwrap_or(USUAL_LEASE),
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = state.observe(&look) {
            tracing::warn!(
                ?by,
                "the database's clock jumped forward, or this process stood still; for one lease, the leases of other nodes end by \
                 the clock of this process"
            );
        }
        state.bound(&look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::{NodeId, NodeMode};

    const LEASE: u64 = 15_000;

    /// Looks at the nodes at these milliseconds of the process and of the database.
    fn look(state: &mut State, start: Instant, (asked, answered): (u64, u64), time: i64) -> (Option<u64>, i64) {
        let [asked, answered] = [asked, answered].map(|millis| start + Duration::from_millis(millis));
        let (lease, time) = (Duration::from_millis(LEASE), Timestamp::from_micros(time * 1000));
        let look = Look { seen: Anchor { time, asked }, answered, shortest: lease, longest: lease };
        let jumped = state.observe(&look).map(|by| u64::try_from(by.as_millis()).expect("fits"));
        (jumped, state.bound(&look).expect("an anchor").as_micros() / 1000)
    }

    /// The times of question and answer, the database's time, the jump that is found, and the bound.
    type Line = ((u64, u64), i64, Option<u64>, i64);

    #[test]
    fn the_bound_follows_the_databases_clock_but_for_a_jump() {
        let cases: [(&str, &[Line]); 7] = [
            ("steady", &[((0, 10), 100_000, None, 100_750), ((5_000, 5_010), 105_000, None, 105_750)]),
            (
                "drift",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    ((5_000, 5_000), 105_500, None, 106_250),
                    ((10_000, 10_000), 111_000, None, 111_750),
                ],
            ),
            (
                "set back",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    ((5_000, 5_000), 50_000, None, 50_750),
                    ((6_000, 6_000), 51_000, None, 51_750),
                ],
            ),
            (
                "a jump is believed after a lease",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    ((5_000, 5_000), 905_000, Some(800_000), 105_750),
                    ((10_000, 10_000), 910_000, None, 110_750),
                    ((19_999, 19_999), 919_999, None, 120_749),
                    ((20_000, 20_000), 920_000, None, 920_750),
                    ((21_000, 21_000), 921_000, None, 921_750),
                ],
            ),
            (
                "a second jump begins anew",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    ((5_000, 5_000), 905_000, Some(800_000), 105_750),
                    ((19_000, 19_000), 1_919_000, Some(1_800_000), 119_750),
                    ((20_000, 20_000), 1_920_000, None, 120_750),
                    ((34_000, 34_000), 1_934_000, None, 1_934_750),
                ],
            ),
            (
                "a jump that is taken back",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    ((5_000, 5_000), 905_000, Some(800_000), 105_750),
                    ((6_000, 6_000), 106_000, None, 106_750),
                    ((20_000, 20_000), 920_000, Some(800_000), 120_750),
                ],
            ),
            (
                "a slow answer",
                &[
                    ((0, 0), 100_000, None, 100_750),
                    // Asked long before the database looked at its clock.
                    ((1_000, 6_000), 106_000, None, 101_750),
                    ((7_000, 7_000), 107_000, None, 107_750),
                ],
            ),
        ];
        for (name, lines) in cases {
            let (mut state, start) = (State::default(), Instant::now());
            for (number, (at, time, jumped, bound)) in lines.iter().enumerate() {
                assert_eq!(look(&mut state, start, *at, *time), (*jumped, *bound), "{name}, look {number}");
            }
        }
    }

    fn node(name: &str, expires_at: i64) -> NodeStatus {
        NodeStatus {
            node: NodeId::from_stored(name),
            mode: NodeMode::SingleNode.name().to_owned(),
            started_at: Timestamp::from_micros(0),
            lease_left: None,
            expires_at: Timestamp::from_micros(expires_at * 1000),
            lease: Some(Duration::from_millis(LEASE)),
            partitions: 0,
            figures: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_when_both_clocks_say_so() {
        let clock = LeaseClock::default();
        let nodes = || vec![node("dead", 99_000), node("living", 112_000), node("renewed", 4_000_000)];
        let names = |nodes: &[NodeStatus]| nodes.iter().map(|node| node.node.to_string()).collect::<Vec<_>>();
        let look = |millis: i64| {
            let judged = clock.judge(nodes(), Timestamp::from_micros(millis * 1000), Instant::now());
            (names(&judged.ended), judged.spared_for)
        };
        let ended = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(look(100_000), (ended(&["dead"]), None));
        tokio::time::advance(Duration::from_secs(1)).await;
        let left = Duration::from_millis(10_250);
        assert_eq!(look(3_701_000), (ended(&["dead"]), Some(left)), "the clock jumped by an hour");
        tokio::time::advance(left).await;
        assert_eq!(look(3_711_250), (ended(&["dead", "living"]), None), "it was not renewed");
    }

    #[test]
    fn a_clock_that_was_never_looked_at_is_believed() {
        let judged = LeaseClock::default().judge(vec![node("dead", 1)], Timestamp::from_micros(5_000), Instant::now());
        assert_eq!((judged.ended.len(), judged.alive.len()), (1, 0));
    }
}
