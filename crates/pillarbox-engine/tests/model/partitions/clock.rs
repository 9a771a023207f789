//! The knowledge of a process of the database's clock. How far it believes that clock decides the engine's own text,
//! `pillarbox-core/src/store/lease_clock.rs`, compiled once more here.

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../pillarbox-core/src/store/lease_clock.rs"));

/// The lease of the protocol, and of the engine's own tests.
const LENGTH: Duration = USUAL_LEASE;
const TICK: Duration = Duration::from_secs(LENGTH.as_secs() / super::protocol::LEASE as u64);
const MICROS: i64 = TICK.as_secs().cast_signed() * 1_000_000;
/// The database's time at each look: what counts is how far it is from what was expected.
const TIME: Timestamp = Timestamp::from_micros(1_000_000_000_000);

/// The [`State`] of a [`LeaseClock`], in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Clock {
    /// The lead of the database's clock over what this process expects, by the anchor that joining has left.
    ahead: i8,
    /// The same by the anchor of a jump that is not believed yet, and until when it is not.
    jump: Option<(i8, u8)>,
}

/// The time up to which the database's clock is believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound(Timestamp);

impl Bound {
    /// True if a lease has ended that has so many ticks left by the database's clock.
    pub(crate) fn is_past(self, left: i8) -> bool {
        at(left) <= self.0
    }
}

/// The time that the database shows after so many ticks.
fn at(ticks: i8) -> Timestamp {
    Timestamp::from_micros(TIME.as_micros() + i64::from(ticks) * MICROS)
}

impl Clock {
    /// The database's clock and that of the process went apart.
    pub(crate) fn shift(&mut self, ahead: i8) {
        self.ahead = self.ahead.saturating_add(ahead);
        if let Some((jumped, _)) = &mut self.jump {
            *jumped = jumped.saturating_add(ahead);
        }
    }

    pub(crate) fn tick(&mut self) {
        if let Some((_, until)) = &mut self.jump {
            *until = until.saturating_sub(1);
        }
    }

    /// Looks at the nodes.
    pub(crate) fn look(&mut self) -> Bound {
        static NOW: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        let anchor = |ahead: i8| Anchor { time: at(-ahead), asked: *NOW };
        let jump =
            self.jump.map(|(ahead, until)| Jump { anchor: anchor(ahead), until: *NOW + TICK * u32::from(until) });
        let mut state = State { anchor: Some(anchor(self.ahead)), jump };
        let look = Look { seen: anchor(0), answered: *NOW, shortest: LENGTH, longest: LENGTH };
        state.observe(&look);
        let ahead =
            |anchor: Anchor| i8::try_from((TIME.as_micros() - anchor.at(*NOW).as_micros()) / MICROS).unwrap_or(i8::MAX);
        self.ahead = state.anchor.map_or(0, ahead);
        self.jump = state.jump.map(|jump| {
            let until = (jump.until - *NOW).as_secs() / TICK.as_secs();
            (ahead(jump.anchor), u8::try_from(until).unwrap_or(u8::MAX))
        });
        Bound(state.bound(&look).unwrap_or(TIME))
    }
}
