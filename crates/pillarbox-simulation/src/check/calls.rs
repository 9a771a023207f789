use std::collections::BTreeMap;

use pillarbox_core::ownership::NodeId;

/// The calls of handlers, by event and handler.
#[derive(Debug, Default)]
pub struct Calls {
    running: Vec<Running>,
    rows: BTreeMap<(u32, u8), CallsOfARow>,
}

/// The calls of one handler with one event since the event was last replayed.
#[derive(Debug, Default)]
pub struct CallsOfARow {
    calls: Vec<Call>,
    /// Attempts that were announced.
    pub announced: u32,
    /// A fallback has ended well.
    rescued: bool,
    /// The number of times that an operator has replayed it.
    pub replays: u32,
}

/// A call of a handler.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of the call.
    pub number: u64,
    /// The node that called.
    pub node: NodeId,
    /// The number of the attempt, as the handler was told.
    pub attempt: u32,
    /// The ending of the call; `None` while it runs.
    pub ending: Option<Ending>,
    /// A replay came after it began: it counts for nothing.
    past: bool,
}

/// A call that runs.
#[derive(Debug, Clone)]
pub struct Running {
    /// The number of its event.
    pub event: u32,
    /// The number of its handler.
    pub handler: u8,
    /// The number of the call.
    pub number: u64,
    /// The node that called.
    pub node: NodeId,
}

/// The ending of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Done,
    /// With an error that is worth another try, or a panic.
    Failed,
    /// It asked for another time.
    Deferred,
    /// With an error that is not worth another try.
    Hopeless,
    /// It was dropped, by a time limit, a shutdown or the end of its process.
    Dropped,
}

impl Calls {
    /// The calls of a row.
    pub fn of(&mut self, event: u32, handler: u8) -> &mut CallsOfARow {
        self.rows.entry((event, handler)).or_default()
    }

    /// The calls of a row, if there were any.
    #[must_use]
    pub fn get(&self, event: u32, handler: u8) -> Option<&CallsOfARow> {
        self.rows.get(&(event, handler))
    }

    /// The calls that run.
    #[must_use]
    pub fn running(&self) -> &[Running] {
        &self.running
    }

    /// A call begins.
    pub fn begin(&mut self, event: u32, handler: u8, number: u64, node: &NodeId, attempt: u32) {
        let call = Call { number, node: node.clone(), attempt, ending: None, past: false };
        self.of(event, handler).calls.push(call);
        self.running.push(Running { event, handler, number, node: node.clone() });
    }

    /// A call has ended.
    pub fn end(&mut self, event: u32, handler: u8, number: u64, ending: Ending) {
        if let Some(call) = self.of(event, handler).calls.iter_mut().find(|call| call.number == number) {
            call.ending = Some(ending);
        }
        self.running.retain(|running| running.number != number);
    }
}

impl CallsOfARow {
    /// The calls since the last replay.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.past)
    }

    /// All calls, those before the last replay included.
    #[must_use]
    pub fn all(&self) -> &[Call] {
        &self.calls
    }

    /// Its fallback has ended well.
    pub fn rescue(&mut self) {
        self.rescued = true;
    }

    /// The transaction of this node's last call has committed: until then it had not ended well.
    pub fn committed_by(&mut self, node: &NodeId) {
        if let Some(call) = self.calls.iter_mut().rfind(|call| call.node == *node) {
            call.ending = Some(Ending::Done);
        }
    }

    /// The database has lost the commits of its calls.
    pub fn uncommitted(&mut self) {
        let committed = self.calls.iter_mut().filter(|call| call.ending == Some(Ending::Done));
        committed.for_each(|call| call.ending = Some(Ending::Failed));
    }

    /// An operator has made it NEW.
    pub fn replay(&mut self) {
        self.calls.iter_mut().for_each(|call| call.past = true);
        (self.announced, self.rescued) = (0, false);
        self.replays += 1;
    }

    /// True if a call or a fallback ended well.
    #[must_use]
    pub fn is_handled(&self) -> bool {
        self.rescued || self.calls.iter().any(|call| call.ending == Some(Ending::Done))
    }

    /// True if this node has handled it.
    #[must_use]
    pub fn is_handled_by(&self, node: &NodeId) -> bool {
        self.calls().any(|call| call.ending == Some(Ending::Done) && call.node == *node) || self.rescued
    }

    /// True if a call ended with an error that is not worth another try.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.calls.iter().any(|call| call.ending == Some(Ending::Hopeless))
    }

    /// True if this node's last call of it has failed for good, or its process died of it as often as it may.
    #[must_use]
    pub fn is_given_up_by(&self, node: &NodeId, max_attempts: u32) -> bool {
        let last = self.calls().filter(|call| call.node == *node).last();
        last.is_some_and(|call| {
            call.ending == Some(Ending::Hopeless)
                || (call.attempt >= max_attempts && matches!(call.ending, Some(Ending::Failed | Ending::Dropped)))
        })
    }

    /// The number of calls that failed.
    #[must_use]
    pub fn failures(&self) -> usize {
        let failed = |call: &&Call| matches!(call.ending, Some(Ending::Failed | Ending::Hopeless | Ending::Dropped));
        self.calls().filter(failed).count()
    }

    /// Checks that so many attempts are no more than the calls that failed, or are known to have ended with their process.
    pub fn justify(&self, attempts: u32) -> Result<(), (&'static str, String)> {
        let most = self.failures() + self.announced as usize;
        // A call before a replay may be counted after it, if its node did not know.
        let past = self.calls.iter().filter(|call| call.past).count();
        if attempts as usize <= most + past {
            return Ok(());
        }
        Err(("I5", format!("{attempts} attempts are recorded after {most} calls that failed")))
    }
}
