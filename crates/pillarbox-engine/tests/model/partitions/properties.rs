//! What must hold in every state.

use stateright::{Model, Property};

use super::protocol::{Action, Fate, LEASE, Protocol, State};

pub(crate) const ONE_OWNER: &str = "a partition has at most one node that relies on owning it";
pub(crate) const ONE_DELIVERY: &str = "of a partition at most one delivery runs at a node that relies on its lease";
pub(crate) const NOT_BEHIND: &str = "no row changes while another node relies on owning it";
pub(crate) const NOT_TWICE: &str = "no event is delivered again unless its delivery was cut off";
pub(crate) const HEALS: &str = "once nothing fails any more every partition is owned as it should be, and drained";

impl Model for Protocol {
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
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ONE_OWNER, Self::has_one_owner),
            Property::always(ONE_DELIVERY, Self::has_one_delivery),
            Property::always(NOT_BEHIND, |_, state: &State| !state.history.behind_the_owner),
            Property::always(NOT_TWICE, |_, state: &State| !state.history.twice),
            // What shows that the states of interest are reached at all.
            Property::sometimes("a partition is handed over between living nodes", Self::was_handed_over),
        ];
        if self.heals {
            properties.push(Property::always(HEALS, Self::heals));
        }
        if self.events > 0 {
            properties.push(Property::sometimes("every event is delivered", Self::is_drained));
        }
        if self.time_passes {
            let name = "a node has not noticed that others evicted it";
            properties.push(Property::sometimes(name, |_, state: &State| {
                state.processes.iter().any(|node| !state.table.is_registered(node.id))
            }));
        }
        properties
    }
}

impl Protocol {
    fn has_one_owner(&self, state: &State) -> bool {
        let owners = |partition| state.processes.iter().filter(|node| self.owns(node, partition)).count();
        (0..self.places.len()).all(|partition| owners(partition) <= 1)
    }

    fn has_one_delivery(&self, state: &State) -> bool {
        let running = |partition| state.processes.iter().filter(|node| self.delivers(node, partition)).count();
        (0..self.places.len()).all(|partition| running(partition) <= 1)
    }

    fn was_handed_over(&self, state: &State) -> bool {
        state.table.partitions.iter().any(|partition| {
            let elder_lives = |owner| state.processes.iter().any(|node| node.id < owner && node.age == 0);
            partition.epoch == 2 && partition.owner.is_some_and(elder_lives)
        })
    }

    fn is_drained(&self, state: &State) -> bool {
        state.table.partitions.iter().all(|partition| partition.done == self.events)
    }

    /// Lets every process do in turn what it should, beginning those that do not run, and looks at where that leads to.
    fn heals(&self, state: &State) -> bool {
        let mut state = State { late: None, ..state.clone() };
        (0..2 * LEASE + 2).any(|_| {
            // From the last to the first, since a process that ends makes those behind it move up.
            for process in (0..state.processes.len()).rev() {
                self.work(&mut state, process);
            }
            while state.processes.len() < self.processes {
                self.step(&mut state, Action::Join);
            }
            self.step(&mut state, Action::Tick { missed_by: None });
            self.is_drained(&state) && self.is_spread(&state)
        })
    }

    /// Whether each partition is owned by the node whose target it is in, and nobody else is registered.
    fn is_spread(&self, state: &State) -> bool {
        let owner = |place: u8| {
            let mut living = state.processes.iter().map(|node| node.id);
            living.find(|id| state.table.target(*id).is_some_and(|target| target.contains(&place)))
        };
        state
            .table
            .partitions
            .iter()
            .zip(&self.places)
            .all(|(row, place)| row.owner.is_some() && row.owner == owner(*place))
    }

    /// One round of a process to which nothing happens.
    fn work(&self, state: &mut State, process: usize) {
        let id = state.processes[process].id;
        if !state.processes[process].is_live(self.flaw) {
            self.step(state, Action::Crash(process));
        }
        let mut round = vec![Action::Renew(process, Fate::Answered)];
        if self.watches() {
            round.push(Action::Watch(process));
        }
        round.push(Action::Rebalance(process, Fate::Answered));
        for partition in 0..self.places.len() {
            let deliver = [Action::Read(process, partition), Action::Begin(process, partition)];
            round.extend(deliver);
            round.push(Action::Settle(process, partition, Fate::Answered));
        }
        for action in round {
            if state.processes.get(process).is_some_and(|node| node.id == id) {
                self.step(state, action);
            }
        }
    }
}
