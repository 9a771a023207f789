//! The steps of writers, of the reader, of operators and of what fails.

use super::database::{Database, Event, Key, Phase as Writing, Row, Status, Time, Transaction};
use super::instance::{Action, Events, Flaw, GoesBack, History, Instance, Seq, State};
use super::proof::SafePoint;
use super::reader::{Fetch, InMemory, Phase, Reader, WritersQuery, lowest};

impl Instance {
    pub(crate) fn start(&self) -> State {
        let events = self.transactions.iter().map(Vec::len).sum();
        State {
            database: Database::new(self.transactions.len()),
            older: None,
            went_back: false,
            server: 0,
            losses: 0,
            reader: Reader::new(0, 0, 0),
            tick: 0,
            fails: self.fails,
            crashes: self.crashes,
            history: History { before: vec![0; events], ..History::default() },
        }
    }

    /// What to try in a state; [`step`](Self::step) knows whether it is possible.
    pub(crate) fn candidates(&self, state: &State, actions: &mut Vec<Action>) {
        use Action::{
            Answer, Ask, BecomeDue, Commit, Crash, Deliver, Discard, FallBehind, Fetch, GoBack, Insert, Learn, Prepare,
            Record, Renew, Replay, Rest, RollBack, Take, Tick, Undo, Write,
        };
        for transaction in 0..self.transactions.len() {
            let steps = [Write, Insert, Undo, Prepare, Commit, RollBack];
            actions.extend(steps.map(|step| step(transaction)));
        }
        for row in &state.database.rows {
            actions.extend([BecomeDue, Replay, Discard].map(|step| step(row.seq)));
        }
        actions.extend([Tick, Ask, Learn, Fetch, Take, Renew, Crash, FallBehind, GoBack]);
        for (seq, in_memory) in &state.reader.in_memory {
            match in_memory.phase {
                Phase::Queued => {
                    actions.extend([Status::Done, Status::Retry, Status::Dead].map(|verdict| Deliver(*seq, verdict)));
                }
                Phase::Ended(_) => actions.push(Record(*seq)),
                Phase::Recorded(..) => actions.push(Answer(*seq)),
                Phase::Resting => actions.push(Rest(*seq)),
            }
        }
    }

    /// Takes a step; `None` if it is not possible in this state.
    pub(crate) fn step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Write(transaction) => self.write(state, transaction),
            Action::Insert(transaction) => {
                let begun = &mut state.database.transactions[transaction];
                (begun.phase == Writing::Begun).then(|| begun.phase = Writing::Open)
            }
            Action::Undo(transaction) => {
                let open = &mut state.database.transactions[transaction];
                (self.rolls_back && open.phase == Writing::Open).then_some(())?;
                open.rows.pop().map(drop)
            }
            Action::Prepare(transaction) => {
                let open = &mut state.database.transactions[transaction];
                (self.prepares && open.phase == Writing::Open).then(|| open.phase = Writing::Prepared)
            }
            Action::Commit(transaction) => {
                let phase = state.database.transactions[transaction].phase;
                matches!(phase, Writing::Open | Writing::Prepared).then(|| state.database.commit(transaction))
            }
            Action::RollBack(transaction) => {
                let open = &mut state.database.transactions[transaction];
                (self.rolls_back && open.is_open()).then(|| {
                    open.rows.clear();
                    open.phase = Writing::Ended;
                })
            }
            Action::Tick => self.tick(state),
            Action::BecomeDue(seq) => {
                let row = state.database.row(seq)?;
                (row.time == Time::Later && row.is_pending()).then(|| row.time = Time::Due)
            }
            Action::Replay(seq) => {
                let row = state.database.row(seq).filter(|row| row.status == Status::Dead)?;
                (row.status, row.time) = (Status::New, Time::None);
                state.database.interventions += 1;
                Some(())
            }
            Action::Discard(seq) => {
                let row = state.database.row(seq).filter(|row| row.status == Status::Dead)?;
                row.status = Status::Done;
                let event = row.event;
                state.database.interventions += 1;
                state.history.over |= bit(event);
                Some(())
            }
            Action::Ask => self.ask(state),
            Action::Learn => self.learn(state),
            Action::Fetch => self.fetch(state),
            Action::Take => self.take(state),
            Action::Deliver(seq, verdict) => self.deliver(state, seq, verdict),
            Action::Record(seq) => self.record(state, seq),
            Action::Answer(seq) => {
                let Phase::Recorded(verdict, recorded) = state.reader.in_memory.get(&seq)?.phase else { return None };
                state.reader.recorded(seq, verdict, recorded, self.flaw);
                if state.went_back && self.flaw != Some(Flaw::TrustsALateAnswer) {
                    // `Settler::settled`: the history is another one than when verdicts were recorded before.
                    state.reader.wake = state.reader.wake.map_or(Some(seq), |other| Some(other.min(seq)));
                }
                Some(())
            }
            Action::Rest(seq) => {
                (state.reader.in_memory.get(&seq)?.phase == Phase::Resting).then_some(())?;
                state.reader.release(seq);
                state.reader.wake = lowest(state.reader.wake, seq);
                Some(())
            }
            Action::Renew => {
                let restored = matches!(self.goes_back, Some(GoesBack::IsRestored | GoesBack::IsRestoredYoung));
                (restored && !state.went_back && state.database.renewals == 0).then(|| {
                    state.database.renewals += 1;
                    state.reader.confirmed = state.database.renewals;
                })
            }
            Action::Crash => {
                state.crashes = state.crashes.checked_sub(1)?;
                let (mark, safe_point) = (state.reader.mark, state.reader.safe_point.clone());
                state.rejoin();
                if self.flaw == Some(Flaw::HandsTheMarkOn) {
                    (state.reader.mark, state.reader.safe_point) = (mark, safe_point);
                }
                Some(())
            }
            Action::FallBehind => {
                (self.goes_back.is_some() && state.older.is_none() && !state.went_back).then_some(())?;
                state.older = Some(Database { transactions: Vec::new(), ..state.database.clone() });
                Some(())
            }
            Action::GoBack => self.go_back(state),
        }
    }

    /// The number of the next event of a transaction.
    fn next_event(&self, state: &State, transaction: usize) -> Option<(Event, Key)> {
        let written = state.database.transactions[transaction].written;
        let key = *self.transactions[transaction].get(written)?;
        let before: usize = self.transactions[..transaction].iter().map(Vec::len).sum();
        Some((Event::try_from(before + written).ok()?, key))
    }

    fn write(&self, state: &mut State, transaction: usize) -> Option<()> {
        let (event, key) = self.next_event(state, transaction)?;
        let database = &mut state.database;
        matches!(database.transactions[transaction].phase, Writing::Idle | Writing::Open).then_some(())?;
        // They begin in their order: any other order is another instance.
        let has_begun = |before: &Transaction| before.phase != Writing::Idle;
        database.transactions[..transaction].iter().all(has_begun).then_some(())?;
        let is_before = |row: &&Row| row.key == key && Some(row.event) != self.delayed;
        let before = database.rows.iter().filter(is_before).fold(0, |events, row| events | bit(row.event));
        state.history.before[usize::from(event)] = before;
        database.last += 1;
        let time = if self.delayed == Some(event) { Time::Later } else { Time::None };
        let row = Row { seq: database.last, event, key, status: Status::New, time };
        let open = &mut database.transactions[transaction];
        open.rows.push(row);
        open.written += 1;
        if open.phase == Writing::Idle {
            // Whoever sees the lock before the row knows another name of the transaction.
            open.phase = if self.prepares { Writing::Begun } else { Writing::Open };
        }
        Some(())
    }

    fn tick(&self, state: &mut State) -> Option<()> {
        (!self.tells && state.tick < 3).then_some(())?;
        let open = || state.database.transactions.iter().filter(|open| open.is_open());
        // A transaction ends before it is two ticks old.
        (self.long || open().all(|open| open.age == 0)).then_some(())?;
        for open in state.database.transactions.iter_mut().filter(|open| open.is_open()) {
            open.age += 1;
        }
        state.tick += 1;
        Some(())
    }

    /// `OrderedPoller::read` and `SafePoint::advance`: between two fetches, with what is known of the history up to now.
    fn ask(&self, state: &mut State) -> Option<()> {
        let late = self.flaw == Some(Flaw::ProvesAfterTheRead);
        (state.reader.writers_query.is_none() && (state.reader.fetch.is_none() || late)).then_some(())?;
        if self.notices(state) {
            return Some(());
        }
        let highest = state.database.highest();
        // Of a database where no more can be learned, nothing more is asked.
        (!self.tells || i64::from(highest) > state.reader.safe_point.safe_seq()).then_some(())?;
        let early = (self.flaw == Some(Flaw::ReadsTransactionsFirst))
            .then(|| state.database.writers(highest, self).open.unwrap_or_default());
        state.reader.writers_query = Some(WritersQuery { highest, early, asked: state.tick });
        if self.slow_queries { Some(()) } else { self.learn(state) }
    }

    fn learn(&self, state: &mut State) -> Option<()> {
        let WritersQuery { highest, early, asked } = state.reader.writers_query.take()?;
        let highest = if self.tells && early.is_none() { highest } else { state.database.highest() };
        let mut writers = state.database.writers(highest, self);
        if early.is_some() {
            writers.open = early;
        }
        let tick = if self.flaw == Some(Flaw::CountsFromTheQuestion) { asked } else { state.tick };
        state.reader.safe_point.learn_at(writers, tick);
        Some(())
    }

    /// Begins a fetch, from `OrderedPoller::read` to its statement.
    fn fetch(&self, state: &mut State) -> Option<()> {
        let reader = &mut state.reader;
        (reader.fetch.is_none() && reader.writers_query.is_none()).then_some(())?;
        if !reader.unread
            && let Some(seq) = reader.wake.take()
        {
            reader.reread_from(seq);
        }
        reader.unread = true;
        if self.notices(state) {
            return Some(());
        }
        let reader = &mut state.reader;
        if let Some(freed) = reader.freed.take() {
            reader.reread_from(freed);
            return Some(());
        }
        // `KeyedQueue::begin_fetch`.
        reader.unblock();
        let asks = !reader.headless || reader.watches() || reader.mark == 0;
        let asks = asks && !(self.flaw == Some(Flaw::NeverAsksForHeadsAgain) && state.fails < self.fails);
        let (above, database) = (reader.mark, &state.database);
        let mut rows = database.fetch(above, self.limit, asks, |row| !self.crowded && reader.excludes(row));
        if self.flaw == Some(Flaw::ReadsUncommittedRows) {
            rows.extend(database.transactions.iter().flat_map(|open| &open.rows).filter(|row| !reader.excludes(row)));
        }
        reader.fetch = Some(Fetch {
            above,
            safe_seq: reader.safe_seq(),
            rows,
            interventions: database.interventions,
            headless: asks && !database.has_heads(),
        });
        Some(())
    }

    /// Takes the answer of a fetch: the rest of `OrderedPoller::read`.
    fn take(&self, state: &mut State) -> Option<()> {
        let reader = &mut state.reader;
        (reader.fetch.is_some() && reader.writers_query.is_none()).then_some(())?;
        if reader.losses != state.losses {
            self.notices(state);
            state.reader.abandon_fetch();
            return Some(());
        }
        let mut fetch = reader.fetch.take()?;
        reader.headless |= fetch.headless;
        let starts_over = reader.interventions != fetch.interventions && self.flaw != Some(Flaw::IgnoresOperators);
        reader.interventions = fetch.interventions;
        if starts_over {
            reader.start_over();
            if fetch.above != 0 {
                reader.settled.clear();
                return Some(());
            }
        }
        let full = fetch.rows.len() >= self.limit;
        let ready = fetch.rows.iter().filter(|row| row.time == Time::None).map(|row| row.seq).max();
        let seen = if full { ready.unwrap_or(fetch.above) } else { Seq::MAX };
        let is_early =
            |row: &Row| row.time == Time::Due && row.seq > seen && self.flaw != Some(Flaw::DeliversDueRowsEarly);
        for early in fetch.rows.extract_if(.., |row| is_early(row)) {
            let row = state.database.row(early.seq).filter(|row| row.event == early.event && row.is_pending());
            if let Some(row) = row.filter(|row| row.time == Time::Due) {
                row.time = Time::None;
            }
            reader.wake = lowest(reader.wake, early.seq);
        }
        fetch.rows.sort_unstable_by_key(|row| row.seq);
        for row in fetch.rows {
            reader.take(row, self.flaw);
        }
        reader.settled.clear();
        if !starts_over {
            reader.unread = full;
            let read_up_to = match self.flaw {
                Some(Flaw::MarksWhatWasRead) => ready.unwrap_or_default(),
                Some(Flaw::ProvesAfterTheRead) => seen.min(reader.safe_seq()),
                _ => seen.min(fetch.safe_seq),
            };
            reader.mark = reader.mark.max(read_up_to);
        }
        Some(())
    }

    /// True if the next call finds another history: `HistoryGuard::check_history` and `check_mark`, and
    /// `OrderedPoller::restart_if_history_changed`.
    fn notices(&self, state: &mut State) -> bool {
        if state.reader.server != state.server || state.database.renewals < state.reader.confirmed {
            if self.flaw == Some(Flaw::KeepsTheMarkAfterAFailover) {
                (state.reader.server, state.reader.confirmed) = (state.server, state.database.renewals);
                return false;
            }
            state.rejoin();
            return true;
        }
        if state.reader.losses != state.losses {
            state.reader.losses = state.losses;
            if self.flaw == Some(Flaw::KeepsTheMarkAfterALoss) {
                return false;
            }
            state.reader.safe_point = SafePoint::default();
            state.reader.writers_query = None;
            state.reader.start_over();
            return true;
        }
        false
    }

    fn deliver(&self, state: &mut State, seq: Seq, verdict: Status) -> Option<()> {
        state.reader.may_deliver(seq).then_some(())?;
        match verdict {
            Status::Done => {}
            Status::Dead if !self.dies => return None,
            _ => state.fails = state.fails.checked_sub(1)?,
        }
        let event = state.reader.in_memory.get(&seq)?.row.event;
        let history = &mut state.history;
        history.uncommitted |= !state.went_back && !state.database.is_committed(event);
        history.disordered |= history.before[usize::from(event)] & !history.over != 0;
        history.twice |= history.delivered & bit(event) != 0;
        if verdict == Status::Done {
            history.over |= bit(event);
            history.delivered |= bit(event);
        }
        state.reader.ended(seq, verdict, self.flaw);
        if !self.slow_verdicts {
            self.record(state, seq);
            self.step(state, Action::Answer(seq));
        }
        Some(())
    }

    /// `Store::settle`, and what the settler asks where it is refused.
    fn record(&self, state: &mut State, seq: Seq) -> Option<()> {
        let in_memory = *state.reader.in_memory.get(&seq)?;
        let Phase::Ended(verdict) = in_memory.phase else { return None };
        let before = |other: &InMemory| other.row.key == in_memory.row.key && matches!(other.phase, Phase::Ended(_));
        (!state.reader.in_memory.range(..seq).any(|(_, other)| before(other))).then_some(())?;
        if state.reader.server != state.server && self.notices(state) {
            return Some(());
        }
        let there = state.database.row(seq);
        let another = there.as_ref().is_some_and(|row| row.event != in_memory.row.event);
        let recorded = match there.filter(|row| row.event == in_memory.row.event && row.is_pending()) {
            Some(row) => {
                row.status = verdict;
                row.time = if verdict == Status::Retry { Time::Later } else { Time::None };
                true
            }
            None => false,
        };
        if another && self.flaw != Some(Flaw::KeepsTheMarkAfterAFailover) {
            state.rejoin();
        } else if let Some(in_memory) = state.reader.in_memory.get_mut(&seq) {
            in_memory.phase = Phase::Recorded(verdict, recorded);
        }
        Some(())
    }

    fn go_back(&self, state: &mut State) -> Option<()> {
        let goes_back = self.goes_back?;
        if goes_back == GoesBack::IsRestored && state.older.as_ref()?.renewals >= state.reader.confirmed {
            return None;
        }
        let is_late = |in_memory: &InMemory| matches!(in_memory.phase, Phase::Recorded(..));
        (self.late_answers || !state.reader.in_memory.values().any(is_late)).then_some(())?;
        let older = state.older.take()?;
        for lost in state.database.rows.iter().filter(|row| !older.is_committed(row.event)) {
            state.history.over |= bit(lost.event);
        }
        state.history.delivered = 0;
        let transactions = std::mem::take(&mut state.database.transactions);
        state.database = Database { transactions, ..older };
        for open in state.database.transactions.iter_mut().filter(|open| open.is_open()) {
            open.rows.clear();
            open.phase = Writing::Ended;
        }
        match goes_back {
            GoesBack::FailsOver => state.server += 1,
            GoesBack::Restarts => state.losses += 1,
            GoesBack::IsRestored | GoesBack::IsRestoredYoung => {}
        }
        state.went_back = true;
        // Whoever asked before gets no answer any more; what a fetch has found may be on its way.
        state.reader.writers_query = None;
        Some(())
    }
}

impl State {
    /// The term ends, and the next one begins with nothing.
    fn rejoin(&mut self) {
        self.reader = Reader::new(self.server, self.losses, self.database.renewals);
        self.history.delivered = 0;
    }

    /// Whether the reader knows the history of the database that there is now.
    pub(crate) fn is_known(&self) -> bool {
        self.reader.server == self.server
            && self.reader.losses == self.losses
            && self.database.renewals >= self.reader.confirmed
    }
}

pub(crate) fn bit(event: Event) -> Events {
    1 << event
}
