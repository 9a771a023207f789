//! The steps of the protocol, and what may go wrong between them.

use super::node::{Node, Work};
use super::table::{Given, Id, NEVER, Rebalanced, Table};

/// Length of a lease in ticks.
pub(crate) const LEASE: u8 = 3;
/// How much sooner a node stops relying on its lease, in ticks of its own clock.
pub(crate) const MARGIN: u8 = 1;

/// The instance that is explored.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    /// How many processes run at most.
    pub(crate) processes: usize,
    /// How often a process joins, all in all: what exceeds `processes` is for those that come back.
    pub(crate) joins: u8,
    /// The numbers of the partitions that are watched.
    pub(crate) places: Vec<u8>,
    /// Events in each partition.
    pub(crate) events: u8,
    /// Whether time passes. Without it leases do not end, and nodes only come and go.
    pub(crate) time_passes: bool,
    /// Whether the answer to a renewal may be slow or lost. What that allows is among what answers at once allow, unless
    /// the lease is counted wrongly.
    pub(crate) slow_answers: bool,
    /// How many ticks the processes' clocks miss, all in all.
    pub(crate) drift: u8,
    /// The jump of the database's clock, once, when all processes have joined.
    pub(crate) jump: Option<Jump>,
    /// True if a process may join after that.
    pub(crate) joins_later: bool,
    /// How many answers are lost, requests delayed, and handlers told to stop, all in all.
    pub(crate) faults: u8,
    /// Whether every state is asked for where it leads to once nothing fails any more, which takes its time.
    pub(crate) heals: bool,
    /// The rule that is broken, for a negative control.
    pub(crate) flaw: Option<Flaw>,
}

/// A jump of the database's clock. Whoever renews has a lease of the usual length again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    /// All leases have ended by it.
    Forward,
    /// No lease ends by it any more.
    Back,
}

/// A rule of the protocol that is left out, to see that it is needed and that the model would tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A node relies on its lease for the whole of its length.
    NoMargin,
    /// A node counts its lease from the answer to a renewal.
    CountsFromAnswer,
    /// A node gives a partition away while an event of it is being handled.
    GivesWhatRuns,
    /// What is given is named by its partition alone.
    GivesWithoutEpoch,
    /// What was read is delivered under any ownership of its partition, not only the one under which it was read.
    KeepsWhatItHasRead,
    /// A verdict is recorded whoever brings it.
    SettlesUnfenced,
    /// A node keeps what it owns, whoever else should.
    KeepsSurplus,
    /// A lease has ended when the database's clock says so.
    BelievesTheClock,
    /// Nobody watches whether others renew.
    WatchesNobody,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) table: Table,
    /// The running ones, in the order of their ids.
    pub(crate) processes: Vec<Node>,
    /// A request that its sender has given up, and the database may still get.
    pub(crate) late: Option<Late>,
    pub(crate) history: History,
    pub(crate) joined: u8,
    pub(crate) jumped: bool,
    pub(crate) drift: u8,
    pub(crate) faults: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Late {
    Rebalance { id: Id, given: Given },
    Settle { id: Id, partition: usize, event: u8 },
}

/// What has happened, as far as the properties ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// Of each partition the event that was handed to a handler last, and whether that delivery was cut off.
    pub(crate) begun: Vec<Option<(u8, bool)>>,
    /// An event was handed to a handler again though nothing had cut it off.
    pub(crate) twice: bool,
    /// A row was changed while another node relied on owning it.
    pub(crate) behind_the_owner: bool,
}

/// What may happen next. A process is its place among those running, a partition its place among those watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes on, everywhere but on the clock that misses a tick.
    Tick {
        missed_by: Option<usize>,
    },
    Join,
    Leave(usize),
    /// The process dies, or stops because it no longer relies on its lease: for all others that is the same.
    Crash(usize),
    Renew(usize, Fate),
    /// The answer to a renewal arrives late.
    Confirm(usize),
    Rebalance(usize, Fate),
    Read(usize, usize),
    Begin(usize, usize),
    /// The handler has ended, and its verdict is sent.
    Settle(usize, usize, Fate),
    /// The handler is told that another node waits for the partition, and has ended without a verdict.
    EndTold(usize, usize),
    /// A node watches if others renew, and evicts the first that does not.
    Watch(usize),
    /// The database's clock jumps.
    Jump,
    /// The late request reaches the database.
    Arrive,
    /// The late request is lost.
    Vanish,
}

/// What becomes of a request to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    AnswerLost,
    Late,
}

const FATES: [Fate; 3] = [Fate::Answered, Fate::AnswerLost, Fate::Late];

impl Protocol {
    pub(crate) fn start(&self) -> State {
        State {
            table: Table { members: Vec::new(), partitions: vec![Default::default(); self.places.len()] },
            processes: Vec::new(),
            late: None,
            history: History { begun: vec![None; self.places.len()], twice: false, behind_the_owner: false },
            joined: 0,
            jumped: false,
            drift: self.drift,
            faults: self.faults,
        }
    }

    /// What to try in a state; [`step`](Self::step) knows whether it is possible.
    pub(crate) fn candidates(&self, state: &State, actions: &mut Vec<Action>) {
        if self.time_passes {
            actions.push(Action::Tick { missed_by: None });
        }
        let joins = self.joins_later || !state.jumped;
        if joins && state.joined < self.joins && state.processes.len() < self.processes {
            actions.push(Action::Join);
        }
        if self.jump.is_some() && !state.jumped && (self.joins_later || state.joined == self.joins) {
            actions.push(Action::Jump);
        }
        if state.late.is_some() {
            actions.extend([Action::Arrive, Action::Vanish]);
        }
        for (process, node) in state.processes.iter().enumerate() {
            actions.extend([Action::Leave(process), Action::Crash(process)]);
            if node.is_live(self.flaw) {
                if self.time_passes {
                    actions.extend([Action::Tick { missed_by: Some(process) }, Action::Confirm(process)]);
                    actions.extend(FATES.map(|fate| Action::Renew(process, fate)));
                }
                actions.extend(FATES.map(|fate| Action::Rebalance(process, fate)));
                if self.watches() {
                    actions.push(Action::Watch(process));
                }
            }
            for (partition, holding) in node.holdings.iter().enumerate() {
                match &holding.work {
                    None => actions.push(Action::Read(process, partition)),
                    Some(Work { running: false, .. }) => {
                        actions.extend([Action::Read(process, partition), Action::Begin(process, partition)]);
                    }
                    Some(Work { running: true, .. }) => {
                        actions.push(Action::EndTold(process, partition));
                        actions.extend(FATES.map(|fate| Action::Settle(process, partition, fate)));
                    }
                }
            }
        }
    }

    /// Takes a step; `None` if it is not possible in this state.
    pub(crate) fn step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Tick { missed_by } => self.tick(state, missed_by),
            Action::Join => self.join(state),
            Action::Leave(process) => {
                let id = state.processes[process].id;
                state.end(id);
                state.table.leave(id);
                Some(())
            }
            Action::Crash(process) => {
                state.end(state.processes[process].id);
                Some(())
            }
            Action::Renew(process, fate) => self.renew(state, process, fate),
            Action::Confirm(process) => {
                let node = self.live(state, process)?;
                let sent = node.renewal.take()?;
                node.age = if self.flaw == Some(Flaw::CountsFromAnswer) { 0 } else { sent };
                Some(())
            }
            Action::Rebalance(process, fate) => self.rebalance(state, process, fate),
            Action::Read(process, partition) => self.read(state, process, partition),
            Action::Begin(process, partition) => self.begin(state, process, partition),
            Action::Settle(process, partition, fate) => self.settle(state, process, partition, fate),
            Action::EndTold(process, partition) => self.end_told(state, process, partition),
            Action::Watch(process) => self.watch(state, process),
            Action::Jump => self.jump(state),
            Action::Arrive => self.arrive(state),
            Action::Vanish => state.late.take().map(drop),
        }
    }

    fn tick(&self, state: &mut State, missed_by: Option<usize>) -> Option<()> {
        if missed_by.is_some() {
            state.drift = state.drift.checked_sub(1)?;
        }
        let ahead = if self.jump == Some(Jump::Forward) { LEASE } else { 0 };
        state.table.tick(ahead.cast_signed());
        for (process, node) in state.processes.iter_mut().enumerate() {
            // Whoever's clock is slow believes less of the database's, and takes over later: what it may do is the harder case.
            if missed_by != Some(process) {
                node.tick(self.flaw);
            }
        }
        Some(())
    }

    /// True if nodes watch each other. Where the database's clock is not set back, all that allows is among what that clock allows.
    pub(crate) fn watches(&self) -> bool {
        self.jump == Some(Jump::Back) && self.flaw != Some(Flaw::WatchesNobody)
    }

    fn jump(&self, state: &mut State) -> Option<()> {
        let jump = self.jump?;
        let ahead = if jump == Jump::Forward { LEASE.cast_signed() } else { -LEASE.cast_signed() };
        for member in &mut state.table.members {
            member.left = if jump == Jump::Forward { member.left - ahead } else { NEVER };
        }
        state.processes.iter_mut().for_each(|node| node.clock.shift(ahead));
        state.jumped = true;
        Some(())
    }

    fn watch(&self, state: &mut State, process: usize) -> Option<()> {
        let members = state.table.members.clone();
        if let Some(silent) = self.live(state, process)?.watch(&members) {
            state.evict(silent);
        }
        Some(())
    }

    fn join(&self, state: &mut State) -> Option<()> {
        let id = state.joined;
        state.joined += 1;
        state.table.join(id);
        state.processes.push(Node::new(id, self.places.len()));
        Some(())
    }

    /// The request reaches the database as soon as it is sent: its lease then ends as early as it can.
    fn renew(&self, state: &mut State, process: usize, fate: Fate) -> Option<()> {
        let node = self.live(state, process)?;
        match fate {
            Fate::Answered => node.age = 0,
            _ if !self.slow_answers => return None,
            Fate::AnswerLost => {}
            Fate::Late => node.renewal = Some(0),
        }
        let id = node.id;
        if !state.table.renew(id) {
            state.end(id);
            return Some(());
        }
        for other in &mut state.processes {
            other.watched.remove(&id);
        }
        Some(())
    }

    fn rebalance(&self, state: &mut State, process: usize, fate: Fate) -> Option<()> {
        let node = self.live(state, process)?;
        let (id, given) = (node.id, node.gives(&self.places, self.flaw));
        state.count_fault(fate)?;
        if fate == Fate::Late {
            return state.delay(Late::Rebalance { id, given });
        }
        let rebalanced = self.rebalanced(state, id, &given);
        if fate == Fate::Answered {
            match rebalanced {
                Some(rebalanced) => state.processes[process].learn(rebalanced, &self.places, self.flaw),
                None => state.end(id),
            }
        }
        Some(())
    }

    /// The transaction, and its effect on the deliveries of the nodes that it evicts.
    fn rebalanced(&self, state: &mut State, id: Id, given: &Given) -> Option<Rebalanced> {
        // A transaction whose process is gone judges nobody any more.
        let State { processes, table, .. } = &mut *state;
        let rebalancing = processes.iter_mut().find(|node| node.id == id);
        for dead in rebalancing.map(|node| table.ended(&mut node.clock, self.flaw)).unwrap_or_default() {
            state.evict(dead);
        }
        state.table.rebalance(id, given, &self.places, self.flaw)
    }

    fn read(&self, state: &mut State, process: usize, partition: usize) -> Option<()> {
        let event = state.table.partitions[partition].done;
        let node = self.live(state, process)?;
        if event == self.events || !node.takes(partition, self.places[partition]) || node.runs(partition) {
            return None;
        }
        node.holdings[partition].work = Some(Work { event, running: false });
        Some(())
    }

    fn begin(&self, state: &mut State, process: usize, partition: usize) -> Option<()> {
        let node = self.live(state, process)?;
        if !node.takes(partition, self.places[partition]) {
            return None;
        }
        let work = node.holdings[partition].work.as_mut().filter(|work| !work.running)?;
        work.running = true;
        let event = work.event;
        state.history.begin(partition, event);
        Some(())
    }

    fn settle(&self, state: &mut State, process: usize, partition: usize, fate: Fate) -> Option<()> {
        let node = &state.processes[process];
        let (id, event) = (node.id, node.holdings[partition].work.as_ref().filter(|work| work.running)?.event);
        state.count_fault(fate)?;
        if fate == Fate::Late {
            return state.delay(Late::Settle { id, partition, event });
        }
        self.settled(state, id, partition, event);
        if fate == Fate::Answered {
            state.processes[process].holdings[partition].work = None;
        }
        Some(())
    }

    fn settled(&self, state: &mut State, id: Id, partition: usize, event: u8) {
        if state.table.settle(id, partition, event, self.flaw) {
            let mut others = state.processes.iter().filter(|node| node.id != id);
            state.history.behind_the_owner |= others.any(|node| self.owns(node, partition));
        }
    }

    fn end_told(&self, state: &mut State, process: usize, partition: usize) -> Option<()> {
        let node = &mut state.processes[process];
        if !node.runs(partition) || node.takes(partition, self.places[partition]) {
            return None;
        }
        state.faults = state.faults.checked_sub(1)?;
        node.holdings[partition].work = None;
        state.history.cut_off(partition);
        Some(())
    }

    fn arrive(&self, state: &mut State) -> Option<()> {
        match state.late.take()? {
            Late::Rebalance { id, given } => drop(self.rebalanced(state, id, &given)),
            Late::Settle { id, partition, event } => self.settled(state, id, partition, event),
        }
        Some(())
    }

    /// The node of a process, if it relies on its lease.
    fn live<'a>(&self, state: &'a mut State, process: usize) -> Option<&'a mut Node> {
        Some(&mut state.processes[process]).filter(|node| node.is_live(self.flaw))
    }

    /// Whether a node relies on owning a partition: it may begin a delivery, or one is running.
    pub(crate) fn owns(&self, node: &Node, partition: usize) -> bool {
        let busy = node.holdings[partition].owned.is_some() && node.runs(partition);
        node.is_live(self.flaw) && (busy || node.takes(partition, self.places[partition]))
    }

    /// Whether a node delivers an event of a partition, and relies on its lease.
    pub(crate) fn delivers(&self, node: &Node, partition: usize) -> bool {
        node.is_live(self.flaw) && node.runs(partition)
    }
}

impl State {
    /// The process of a node is no more; what it was delivering is cut off.
    fn end(&mut self, id: Id) {
        self.cut_off(id);
        self.processes.retain(|node| node.id != id);
    }

    /// A node is evicted.
    fn evict(&mut self, id: Id) {
        self.cut_off(id);
        self.table.leave(id);
    }

    /// What a node is delivering may be delivered again: it has died, or its lease has ended.
    fn cut_off(&mut self, id: Id) {
        for node in self.processes.iter().filter(|node| node.id == id) {
            for partition in (0..node.holdings.len()).filter(|partition| node.runs(*partition)) {
                self.history.cut_off(partition);
            }
        }
    }

    fn count_fault(&mut self, fate: Fate) -> Option<()> {
        self.faults = self.faults.checked_sub(u8::from(fate != Fate::Answered))?;
        Some(())
    }

    fn delay(&mut self, late: Late) -> Option<()> {
        self.late.is_none().then(|| self.late = Some(late))
    }
}

impl History {
    fn begin(&mut self, partition: usize, event: u8) {
        self.twice |= match self.begun[partition] {
            Some((last, cut_off)) => event < last || (event == last && !cut_off),
            None => false,
        };
        self.begun[partition] = Some((event, false));
    }

    fn cut_off(&mut self, partition: usize) {
        self.begun[partition] = self.begun[partition].map(|(event, _)| (event, true));
    }
}
