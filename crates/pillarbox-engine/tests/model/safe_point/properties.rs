//! What must hold in every state.

use stateright::{Model, Property};

use super::database::{Phase as Writing, Status, Time};
use super::instance::{Action, Instance, State};
use super::reader::Phase;

pub(crate) const IN_ORDER: &str =
    "an event is delivered after all of its key that were committed before it was written";
pub(crate) const COMMITTED: &str = "an event is delivered only after its transaction has committed";
pub(crate) const ONCE: &str = "an event is delivered once, unless its delivery failed or was cut off";
pub(crate) const BELOW_THE_OPEN: &str = "the mark is below every row that may still commit";
pub(crate) const FOUND: &str = "once nothing fails any more every committed event is delivered";

impl Model for Instance {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.candidates(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        self.step(&mut next, action)?;
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(IN_ORDER, |_, state: &State| !state.history.disordered),
            Property::always(COMMITTED, |_, state: &State| !state.history.uncommitted),
            Property::always(ONCE, |_, state: &State| !state.history.twice),
            Property::always(BELOW_THE_OPEN, |_, state: &State| state.mark_is_below_the_open()),
            Property::always(FOUND, Self::finds_everything),
            // What shows that the states of interest are reached at all.
            Property::sometimes("every event is delivered", |_, state: &State| state.is_drained()),
            Property::sometimes("the mark has passed a row", |_, state: &State| state.mark_has_passed_a_row()),
        ];
        if self.fails > 0 {
            let name = "a row waits below the mark, behind one that has failed";
            properties.push(Property::sometimes(name, |_, state: &State| state.hides_a_row()));
        }
        if self.goes_back.is_some() {
            let name = "the mark is above rows of another history";
            properties.push(Property::sometimes(name, |_, state: &State| {
                !state.is_known() && state.reader.mark > state.database.last
            }));
        }
        properties
    }
}

impl Instance {
    /// Lets everything go on without failures, and looks whether all is delivered. The reader never reads from the bottom for no
    /// reason: the engine does every 15 s, for rows that are changed by hand, and would find what was forgotten.
    fn finds_everything(&self, state: &State) -> bool {
        if !state.may_have_forgotten() {
            return true;
        }
        let mut state = state.clone();
        (0..3).any(|_| {
            for transaction in 0..self.transactions.len() {
                self.step(&mut state, Action::Insert(transaction));
                self.step(&mut state, Action::Commit(transaction));
            }
            let mut actions = Vec::new();
            self.candidates(&state, &mut actions);
            for action in actions {
                if matches!(action, Action::BecomeDue(_) | Action::Replay(_)) {
                    self.step(&mut state, action);
                }
            }
            self.read_all(&mut state);
            state.is_drained()
        })
    }

    /// Reads and delivers until nothing more is found.
    fn read_all(&self, state: &mut State) {
        for _ in 0..8 {
            for action in [Action::Learn, Action::Take, Action::Fetch, Action::Take, Action::Fetch, Action::Take] {
                self.step(state, action);
            }
            let in_memory: Vec<_> = state.reader.in_memory.keys().copied().collect();
            for seq in in_memory {
                let steps =
                    [Action::Deliver(seq, Status::Done), Action::Record(seq), Action::Answer(seq), Action::Rest(seq)];
                for action in steps {
                    self.step(state, action);
                }
            }
        }
    }
}

impl State {
    fn is_drained(&self) -> bool {
        let ended = |phase| matches!(phase, Writing::Idle | Writing::Ended);
        self.database.rows.iter().all(|row| row.status == Status::Done)
            && self.database.transactions.iter().all(|transaction| ended(transaction.phase))
            && !self.database.rows.is_empty()
    }

    /// The rows of an open transaction are all above the mark, as far as the reader can know of it.
    fn mark_is_below_the_open(&self) -> bool {
        let open = self.database.transactions.iter().filter(|open| open.is_open());
        !self.is_known() || open.flat_map(|open| &open.rows).all(|row| row.seq > self.reader.mark)
    }

    /// Whether a committed row is not in memory and would not be read from the mark on.
    fn may_have_forgotten(&self) -> bool {
        let finds_itself = |time| time != Time::None;
        self.database.rows.iter().any(|row| {
            row.status != Status::Done
                && row.seq <= self.reader.mark
                && !finds_itself(row.time)
                && !self.reader.has(row.seq, row.event)
        })
    }

    fn mark_has_passed_a_row(&self) -> bool {
        self.database.rows.iter().any(|row| row.seq <= self.reader.mark)
    }

    fn hides_a_row(&self) -> bool {
        let hidden = |row: &&super::database::Row| row.is_pending() && self.database.is_behind_a_head(row);
        let is_in_memory = |row: &super::database::Row| {
            self.reader.in_memory.get(&row.seq).is_some_and(|in_memory| in_memory.phase == Phase::Queued)
        };
        self.database.rows.iter().filter(hidden).any(|row| row.seq <= self.reader.mark && !is_in_memory(row))
    }
}
