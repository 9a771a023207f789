use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;

use super::ledger::{event_number, handler_number};
use super::{Checker, Line, Order, Violation};

/// The time within which a node that reaches the database has noticed that an event was cancelled or paused: its look, and the way there and back.
const NOTICED_WITHIN: Duration = Duration::from_millis(2100);

impl Checker {
    /// A handler is called, at this time of the database. Returns the number of the call.
    pub fn begin_call(&mut self, delivery: &Delivery, time: i64) -> u64 {
        self.call_number += 1;
        let number = self.call_number;
        let (event, handler) = (event_number(delivery.id().as_str()), handler_number(delivery.handler_id()));
        let node = delivery.node();
        let known = self.members.knows_its_end(node) && !self.members.is_registered(node);
        for (too_late, when) in [
            (known, "after it was evicted, and could know"),
            (self.members.outlives_its_lease(node), "long after it was evicted"),
            (self.members.outlives_its_history(node), "long after the database failed over"),
        ] {
            if too_late {
                self.note(Err(Violation::new("I2", format!("{node} calls a handler with e{event} {when}"))));
            }
        }
        if !self.members.is_excused(delivery.node()) {
            let checked = self.check_call(delivery, event, handler);
            self.note(checked);
            let checked = self.check_pauses(delivery, NOTICED_WITHIN);
            self.note(checked);
            let checked = self.check_due(delivery, event, handler, time);
            self.note(checked);
        }
        self.calls.begin(event, handler, number, delivery.node(), delivery.attempt());
        number
    }

    fn check_call(&mut self, delivery: &Delivery, event: u32, handler: u8) -> Result<(), Violation> {
        let (node, seq) = (delivery.node(), delivery.seq());
        let said = |what: &str| format!("{node} called the handler {handler} with e{event} (seq {seq}): {what}");
        let written = self.events.get(event as usize).map(|event| &*event.payload);
        if written.map(str::as_bytes) != Some(delivery.payload().as_bytes()) {
            return Err(Violation::new("I8", said("its payload is another than was written")));
        }
        self.check_repetition(delivery, event, handler)
            .map_err(|(invariant, what)| Violation::new(invariant, said(&what)))?;
        let line = self.ledger.line(seq).filter(|line| (line.event, line.handler) == (event, handler));
        let is_over = line.is_none_or(|line| line.status == Status::Done);
        if let Some(at) = self.cancelled.get(&(seq, event)).filter(|_| is_over) {
            let late = at.elapsed();
            if late > NOTICED_WITHIN && !self.members.is_troubled(node) {
                return Err(Violation::new("cancelled", said(&format!("it was cancelled {late:?} ago"))));
            }
            return Ok(());
        }
        let Some(line) = line else {
            return Err(Violation::new("I1", said("no such row is committed")));
        };
        if !line.status.is_pending() {
            return Err(Violation::new("I4", said(&format!("the row is {:?}", line.status))));
        }
        if self.members.is_registered(node)
            && !self.members.owns(node, self.rules(node).mode.fence(), line, self.ledger.holder(line))
        {
            return Err(Violation::new("I2", said("the row is not the node's")));
        }
        if self.events.get(event as usize).is_some_and(|event| event.place > 0) {
            // A call puts it off while its route is paused: order is that of what is sent.
            return Ok(());
        }
        self.check_order(node, line, &[]).map_err(|what| Violation::new("I3", said(&what)))
    }

    /// Checks that a node which no fault has met calls no handler before its event is due.
    fn check_due(&self, delivery: &Delivery, event: u32, handler: u8, time: i64) -> Result<(), Violation> {
        let (node, seq) = (delivery.node(), delivery.seq());
        let line = self.ledger.line(seq).filter(|line| (line.event, line.handler) == (event, handler));
        let due = line.filter(|line| line.status.is_pending()).and_then(|line| line.due);
        match due.filter(|due| *due > time) {
            Some(due) if !self.members.is_troubled(node) => {
                let early = due - time;
                let what =
                    format!("{node} called the handler {handler} with e{event} (seq {seq}) {early} µs too early");
                Err(Violation::new("early", what))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a fault explains it if a row is handled again, or while another call has it.
    fn check_repetition(&self, delivery: &Delivery, event: u32, handler: u8) -> Result<(), (&'static str, String)> {
        use super::calls::Ending::Done;
        let Some(calls) = self.calls.get(event, handler) else { return Ok(()) };
        let line = self.ledger.line(delivery.seq()).filter(|line| (line.event, line.handler) == (event, handler));
        let holder = line.and_then(|line| self.ledger.holder(line));
        let excused = |node| self.members.is_excused_for(node, self.rules(node).mode.fence(), line, holder);
        for call in calls.calls() {
            if call.ending == Some(Done) && (call.node == *delivery.node() || !excused(&call.node)) {
                let what = format!("it was handled already, by {}, which no fault explains", call.node);
                return Err(("exactly once", what));
            }
        }
        for call in calls.all().iter().filter(|call| call.ending.is_none()) {
            if call.node == *delivery.node() || !excused(&call.node) {
                return Err(("I2", format!("{} is at it", call.node)));
            }
        }
        Ok(())
    }

    /// Checks that everything that comes before the row has been handled, or is sent `together` with it, where order counts.
    pub(super) fn check_order(&self, node: &NodeId, line: &Line, together: &[u32]) -> Result<(), String> {
        let rules = self.rules(node);
        if rules.order == Order::None {
            return Ok(());
        }
        let Some(ours) = self.events.get(line.event as usize) else { return Ok(()) };
        let in_all = matches!(rules.order, Order::Table { .. });
        if !in_all && ours.key.is_none() {
            return Ok(());
        }
        let same = |event: u32, handler: u8| in_all || self.is_of_the_key(line, event, handler);
        let running = self.calls.running().iter().map(|call| (call.event, call.handler, &call.node));
        let sent = self.sent.iter().flat_map(|sent| sent.events.iter().map(|event| (*event, 0, &sent.node)));
        let under_way: Vec<_> = if ours.place > 0 { sent.collect() } else { running.collect() };
        for (event, handler, other) in under_way {
            let another = (event, handler) != (line.event, line.handler) && same(event, handler);
            if another && (other == node || !self.members.is_excused(other)) {
                return Err(format!("{other} is at e{event} of the same order"));
            }
        }
        for before in self.ledger.lines().iter().take_while(|before| before.seq < line.seq) {
            let delayed = self.events.get(before.event as usize).is_some_and(|event| event.delayed);
            if before.committed > line.committed || delayed || !same(before.event, before.handler) {
                continue;
            }
            if !together.contains(&before.event) && !self.is_over(before, node) {
                let (event, seq, status) = (before.event, before.seq, before.status);
                return Err(format!("e{event} (seq {seq}, {status:?}, committed before) comes before it"));
            }
        }
        Ok(())
    }

    /// True if an event, for its handler, is of the key of a row, and goes to the same place.
    fn is_of_the_key(&self, line: &Line, event: u32, handler: u8) -> bool {
        let written = |event: u32| self.events.get(event as usize);
        let (ours, other) = (written(line.event), written(event));
        let alike = ours.zip(other).is_some_and(|(ours, other)| (&ours.key, ours.place) == (&other.key, other.place));
        handler == line.handler && alike
    }

    /// A row before the one that a transaction of the node completes, which the node has handled as well and not recorded: after a crash
    /// it would be handled again behind the other. `None` where order does not count, or a fault excuses the node.
    pub(super) fn overtaken_by(&self, node: &NodeId, completed: &Line) -> Option<Line> {
        let in_all = match self.rules(node).order {
            _ if self.members.is_excused(node) => return None,
            Order::None => return None,
            Order::Table { .. } => true,
            Order::Key { .. } | Order::First => false,
        };
        let has_key = self.events.get(completed.event as usize).is_some_and(|event| event.key.is_some());
        let lines = self.ledger.lines().iter().take_while(|line| line.seq < completed.seq);
        let mut waiting = lines.filter(|line| {
            let counts = in_all || (has_key && self.is_of_the_key(completed, line.event, line.handler));
            let calls = self.calls.get(line.event, line.handler);
            let delayed = self.events.get(line.event as usize).is_some_and(|event| event.delayed);
            let is_earlier = line.committed <= completed.committed && !delayed;
            counts && is_earlier && line.status.is_pending() && calls.is_some_and(|calls| calls.is_handled_by(node))
        });
        waiting.next().copied()
    }

    /// True if an earlier row lets those behind it go on.
    fn is_over(&self, before: &Line, node: &NodeId) -> bool {
        let rules = self.rules(node);
        // Where a failing head goes DEAD at once, an attempt that has crashed is its last one too.
        let max = if matches!(rules.order, Order::Table { retries: false }) { 1 } else { rules.max_attempts };
        let calls = self.calls.get(before.event, before.handler);
        let handled = calls.is_some_and(|calls| calls.is_handled_by(node));
        // The node that announced an attempt and lost its lease may have taken the announcement back since this one has read it.
        let was_announced = calls.is_some_and(|calls| calls.announced > 0)
            || self.ledger.holder(before).is_some_and(|holder| holder.ends_with('!'));
        let crashed = before.attempts + 1 >= max && was_announced;
        let given_up = || crashed || calls.is_some_and(|calls| calls.is_given_up_by(node, max));
        let replayed = calls.is_some_and(|calls| calls.replays > 0);
        match (rules.order, before.status) {
            (_, Status::Done) | (Order::None, _) => true,
            (Order::Key { dead_blocks }, Status::Dead) => !dead_blocks,
            (Order::Table { .. }, Status::Dead) => true,
            (Order::Key { dead_blocks: true }, _) => handled,
            (Order::Key { dead_blocks: false }, _) | (Order::Table { retries: true }, _) => {
                handled || replayed || given_up()
            }
            (Order::First, Status::Dead | Status::Retry) => true,
            (Order::First, Status::New) => replayed || calls.is_some_and(|calls| !calls.all().is_empty()) || crashed,
            (Order::Table { retries: false }, _) => {
                replayed || calls.is_some_and(|calls| calls.all().iter().any(|call| call.node == *node)) || crashed
            }
        }
    }
}
