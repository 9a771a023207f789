use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use pillarbox_core::clock::Random;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::hash::{HashMap, HashSet};
use pillarbox_core::ownership::{Acquired, Fence, NodeMode};
use pillarbox_core::planted_bug;
use pillarbox_core::row::{Change, Status, Verdict};
use pillarbox_core::store::{Division, History, RowId, Store};
use pillarbox_core::throttle::Throttle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::backoff::Backoff;
use crate::observe::{Counters, Reason, Telemetry, clean_error};
use crate::queue::InFlight;
use crate::tenure::Tenure;

/// Records verdicts in batches that form by themselves: while one is being written the next accumulates, so that no timer
/// delays a lone event and a stream of them shares its transactions. A trickle that would make many small batches of a busy
/// second is gathered for a moment.
///
/// Recording is not handling. While the database fails, verdicts are recorded again and again until the lease is lost;
/// they are never turned into failures of the handler.
#[derive(Debug)]
pub(crate) struct Settler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) tenure: Tenure,
    pub(crate) batch: usize,
    /// True if the rows of delivered events are deleted.
    pub(crate) delete_done: bool,
    pub(crate) verdicts: mpsc::Receiver<Verdict>,
    /// Cancelled when repeating is pointless: the lease is lost, or the time for shutting down is up.
    pub(crate) give_up: CancellationToken,
    /// Cancelled when this node turns out not to be the owner any more.
    pub(crate) lost: CancellationToken,
    /// The history of the database when verdicts were last recorded.
    pub(crate) history: History,
    pub(crate) complaints: Complaints,
}

/// The time from the start of one batch to the start of the next, unless the next is [`FULL_BATCH`]. A statement costs the database
/// as much as ten rows of it: recorded in threes, as they came, the verdicts of busy writers took a third of their database's time.
const BATCH_INTERVAL: Duration = Duration::from_millis(2);
/// Number of verdicts that are recorded without waiting for more: the statement is a small part of what they cost.
const FULL_BATCH: usize = 128;

/// Number of verdicts that are recorded sooner by two calls: below it, the second call costs what it saves.
const MIN_FOR_TWO_CALLS: usize = 2 * FULL_BATCH;

/// A call that fails after this long was too much for the way to the database, or waits for a row that somebody has locked: it timed out, or
/// would have. It is repeated in parts.
const TIMED_OUT_AFTER: Duration = Duration::from_secs(5);
/// Number of parts into which such a call is divided, again and again until they succeed. Few levels of many parts: each level that fails
/// takes a time limit of the database.
const PARTS: usize = 8;
/// Number of such failures in a row after which a lone verdict is not recorded where no order is kept: one locked row must not stop all
/// others. Where order is kept, a row whose verdict is not recorded would be overtaken.
const MAX_LOCKED_TRIES: u32 = 3;

/// A call has failed.
struct FailedCall {
    error: StoreError,
    took: Duration,
}

impl Reason for FailedCall {
    fn reason(&self) -> String {
        self.error.reason()
    }
}

/// The throttles of problems that are worth a line in the log, but not one for every event.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    refused: Throttle,
    unrecordable: Throttle,
    /// Since when verdicts cannot be recorded, if so.
    failing_since: Option<Instant>,
}

impl Settler {
    /// Runs until every sender of verdicts is gone and the last batch is recorded.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(self.batch);
        let mut began = None;
        loop {
            tokio::select! {
                received = self.verdicts.recv_many(&mut batch, self.batch) => {
                    if received == 0 {
                        return;
                    }
                    if let Some(began) = began {
                        self.gather(&mut batch, began + BATCH_INTERVAL).await;
                    }
                    began = Some(Instant::now());
                    if self.delete_done {
                        let done = batch.iter_mut().filter(|verdict| verdict.change.status() == Status::Done);
                        done.for_each(|verdict| self.remove(verdict));
                    }
                    if planted_bug::is_active("release_before_the_record") {
                        self.in_flight.remove(batch.iter().map(|verdict| verdict.row.seq).collect());
                    }
                    self.record(&mut batch).await;
                    self.tell_of_the_end();
                    batch.clear();
                    self.telemetry.loops.settle.clear();
                }
                () = self.in_flight.end_quarantine() => {}
            }
        }
    }

    /// Tells of the end of trouble once nothing of a batch is left to be recorded: parts of it are recorded earlier.
    fn tell_of_the_end(&mut self) {
        if let Some(since) = self.complaints.failing_since.take().filter(|_| !self.give_up.is_cancelled()) {
            tracing::info!(failed_for = ?since.elapsed(), "verdicts are recorded again");
        }
    }

    /// Has the row of a delivered event deleted.
    fn remove(&self, verdict: &mut Verdict) {
        if matches!(verdict.change, Change::Rescued { .. }) {
            Counters::add(&self.telemetry.counters.rescued, 1);
        }
        verdict.change = Change::Remove;
    }

    /// Receives more verdicts until that time, or until they are worth a call.
    async fn gather(&mut self, batch: &mut Vec<Verdict>, until: Instant) {
        let enough = self.batch.min(FULL_BATCH);
        while batch.len() < enough {
            let room = self.batch - batch.len();
            match timeout_at(until, self.verdicts.recv_many(batch, room)).await {
                Ok(received) if received > 0 => {}
                // It is time, or nobody sends any more.
                _ => return,
            }
        }
    }

    /// Records a batch: a large one by two calls at once, since one connection of the database has one processor.
    async fn record(&mut self, batch: &mut [Verdict]) {
        let division = division(batch, self.tenure.mode);
        let middle = match division.filter(|division| self.store.settles_in_parallel(batch, *division)) {
            Some(division) => divide(batch, division, |seqs| self.in_flight.partitions(seqs)),
            None => 0,
        };
        let (one, other) = batch.split_at(middle);
        if one.is_empty() || other.is_empty() {
            return self.settle(batch, false).await;
        }
        let both = async {
            match join(self.call(one, false), self.call(other, false)).await {
                (Ok(one), Ok(other)) => Ok((Ok(one), Ok(other))),
                answers => Err(answers),
            }
        };
        let before = self.history.clone();
        let (Ok(answers) | Err(answers)) = self.telemetry.loops.settle.ask(both).await;
        let mut parts = [(one, answers.0), (other, answers.1)];
        // A recorded part does not wait for one that has to be tried again.
        parts.sort_by_key(|(_, answer)| answer.is_err());
        for (part, answer) in parts {
            // Recording the first part anew may have taken until after a restart, which concerns the second part as well.
            self.history = before.clone();
            self.answered(part, answer, false).await;
        }
    }

    /// Records a batch. `tried` says that it may have been recorded already, by a try whose answer was lost.
    async fn settle(&mut self, batch: &[Verdict], tried: bool) {
        let answer = self.telemetry.loops.settle.ask(self.call(batch, tried)).await;
        self.answered(batch, answer, tried).await;
    }

    /// Tries to record a batch.
    async fn call(&self, batch: &[Verdict], again: bool) -> Result<Vec<i64>, FailedCall> {
        let began = Instant::now();
        let call = self.store.settle(&self.tenure.node, self.tenure.fence(), batch);
        let call = call.instrument(tracing::debug_span!("settle", events = batch.len(), again));
        let answer = self.telemetry.meters.settle.measure(call, |_refused| batch.len()).await;
        // Its answer does not matter here: if the database went back, the lease ends by it, and this task with the term.
        self.tenure.history_guard.check_history();
        answer.map_err(|error| FailedCall { error, took: began.elapsed() })
    }

    /// The database has answered for a batch. What failed is tried again.
    async fn answered(&mut self, batch: &[Verdict], mut answer: Result<Vec<i64>, FailedCall>, mut tried: bool) {
        let (mut backoff, mut too_long) = (Backoff::default(), 0);
        loop {
            match answer {
                Ok(refused) => {
                    // After a failure the first try may have been recorded all the same, and then repeating it changes
                    // nothing: what looks refused is not known to be.
                    self.settled(batch, &refused, !tried);
                    if !refused.is_empty() && !tried {
                        self.question_history(batch, &refused).await;
                        self.question_ownership().await;
                    }
                    return;
                }
                Err(FailedCall { error, .. }) if error.kind() == StoreErrorKind::Unexpected => {
                    match batch {
                        [verdict] => match plainer(verdict) {
                            Some(plain) => Box::pin(self.settle(&[plain], tried)).await,
                            None => self.unrecordable(verdict, &error),
                        },
                        // One verdict that the database refuses must not keep the others from being recorded.
                        _ => self.settle_parts(batch, 2, tried).await,
                    }
                    return;
                }
                Err(FailedCall { error, took }) => {
                    if self.complaints.failing_since.is_none() {
                        tracing::warn!(%error, events = batch.len(), "verdicts cannot be recorded; trying again");
                        self.complaints.failing_since = Some(Instant::now());
                    }
                    tried = true;
                    let wait = self.telemetry.loops.settle.sleep(backoff.next(&*self.random));
                    if self.give_up.run_until_cancelled(wait).await.is_none() {
                        return self.not_recorded(batch);
                    }
                    too_long = if took >= TIMED_OUT_AFTER { too_long + 1 } else { 0 };
                    match batch {
                        [verdict] if too_long >= MAX_LOCKED_TRIES && !self.keeps_order() => {
                            return self.unrecordable(verdict, &error);
                        }
                        [_, _, ..] if too_long > 0 => return self.settle_parts(batch, PARTS, tried).await,
                        _ => {}
                    }
                }
            }
            answer = self.telemetry.loops.settle.ask(self.call(batch, tried)).await;
        }
    }

    fn keeps_order(&self) -> bool {
        matches!(self.tenure.mode, NodeMode::Partitioned | NodeMode::Ordered)
    }

    /// Records a batch in up to so many parts, one after the other, since the events of a key are recorded in their order.
    async fn settle_parts(&mut self, batch: &[Verdict], parts: usize, tried: bool) {
        let mut rest = batch.chunks(batch.len().div_ceil(parts).max(1));
        while let Some(part) = rest.next() {
            Box::pin(self.settle(part, tried)).await;
            if self.give_up.is_cancelled() {
                rest.for_each(|part| self.not_recorded(part));
                return;
            }
        }
    }

    /// Verdicts are not recorded: it is too late for another try.
    fn not_recorded(&self, batch: &[Verdict]) {
        tracing::warn!(events = batch.len(), "verdicts were not recorded; the events are delivered again");
        Counters::add(&self.telemetry.counters.refused, batch.len() as u64);
    }

    fn settled(&mut self, batch: &[Verdict], refused: &[i64], first: bool) {
        let refused: HashSet<i64> = refused.iter().copied().collect();
        let new = if first { refused.len() as u64 } else { 0 };
        Counters::add(&self.telemetry.counters.refused, new);
        // A batch without any brings what the last line could not speak for.
        if let Some(events) = self.complaints.refused.report(new) {
            let one = batch
                .iter()
                .find(|verdict| refused.contains(&verdict.row.seq))
                .map(|verdict| verdict.row.event_id.as_str());
            tracing::warn!(
                events,
                event_id = one,
                node = %self.tenure.node,
                "verdicts were refused: this node no longer owns the rows, or they changed, as by an operator who has cancelled them; what their \
                 handlers did is not recorded"
            );
        }
        let (mut totals, mut rescued) = ([0_u64; 4], 0);
        for verdict in batch.iter().filter(|verdict| !refused.contains(&verdict.row.seq)) {
            let kind = match &verdict.change {
                Change::Done | Change::DeliveredAs(_) | Change::Remove => 0,
                Change::Rescued { .. } => {
                    rescued += 1;
                    0
                }
                Change::Retry { attempts, .. } if *attempts > verdict.expected.attempts => 1,
                Change::Retry { .. } => 2,
                Change::RetryInPlace { .. } => 1,
                Change::Dead { .. } => 3,
            };
            totals[kind] += 1;
        }
        let counters = &self.telemetry.counters;
        let [done, retried, deferred, dead] = totals;
        Counters::add(&counters.done, done);
        Counters::add(&counters.rescued, rescued);
        Counters::add(&counters.retried, retried);
        Counters::add(&counters.deferred, deferred);
        Counters::add(&counters.dead, dead);
        let went_back = || {
            let before = std::mem::replace(&mut self.history, self.store.history());
            before != self.history
        };
        self.in_flight.recorded(batch, &refused, first, went_back);
    }

    /// A refused verdict may be on an event whose place another one has now: then the database has gone back.
    async fn question_history(&self, batch: &[Verdict], refused: &[i64]) {
        match self.store.identify(refused).await {
            Ok(there) => {
                let there: HashMap<i64, RowId> = there.into_iter().map(|row| (row.seq, row)).collect();
                let is_another = |row: &RowId| there.get(&row.seq).is_some_and(|there| there != row);
                if batch.iter().any(|verdict| is_another(&verdict.row)) {
                    self.tenure.history_guard.went_back();
                }
            }
            Err(error) => tracing::debug!(%error, "the rows of refused verdicts cannot be looked up"),
        }
    }

    /// After a refusal, asks if this node is still the owner, where one node owns everything. Elsewhere the row alone, or its
    /// partition, may have changed hands.
    async fn question_ownership(&self) {
        if self.tenure.fence() != Fence::Table {
            return;
        }
        match self.store.acquire(&self.tenure.node).await {
            Ok(Acquired::Owner { .. }) => {}
            Ok(Acquired::Standby { .. } | Acquired::Lost) => self.lost.cancel(),
            Err(error) => tracing::debug!(%error, "ownership cannot be checked"),
        }
    }

    /// The row stays pending, so it is delivered again: at least once, not at once.
    fn unrecordable(&mut self, verdict: &Verdict, error: &StoreError) {
        Counters::add(&self.telemetry.counters.refused, 1);
        let row = &verdict.row;
        if let Some(events) = self.complaints.unrecordable.report(1) {
            let RowId { seq, event_id, handler } = row;
            tracing::error!(
                events, event_id = event_id.as_str(), seq, handler = handler.as_deref(), %error,
                "the database refuses to record verdicts; the handlers of their events are called again within a minute"
            );
        }
        if matches!(verdict.change, Change::RetryInPlace { .. }) {
            return self.in_flight.retry_in_place_not_recorded();
        }
        self.in_flight.quarantine(row.seq);
    }
}

/// The way to divide a batch, if it may be divided and is large enough. All verdicts of a key that keeps its order are in one part: with a
/// later event of it DONE and an earlier one not, a crash would have the earlier one delivered last.
fn division(batch: &[Verdict], mode: NodeMode) -> Option<Division> {
    if batch.len() < MIN_FOR_TWO_CALLS {
        return None;
    }
    match mode {
        NodeMode::SingleNode | NodeMode::MultiNode => Some(Division::Halves),
        NodeMode::Partitioned => Some(Division::Partitions),
        NodeMode::Ordered => None,
    }
}

/// Puts a batch into the two parts of a division, and returns where the second begins.
fn divide(batch: &mut [Verdict], division: Division, partitions: impl FnOnce(&[i64]) -> Vec<Option<u8>>) -> usize {
    match division {
        Division::Partitions => {
            let seqs: Vec<i64> = batch.iter().map(|verdict| verdict.row.seq).collect();
            let partitions = partitions(&seqs).into_iter();
            let odd: HashSet<i64> = seqs
                .into_iter()
                .zip(partitions)
                .filter(|(_, partition)| partition.is_some_and(|partition| partition % 2 == 1))
                .map(|(seq, _)| seq)
                .collect();
            // Stable: should the database refuse a part, it is recorded piece by piece, and a key's events in their order.
            batch.sort_by_key(|verdict| odd.contains(&verdict.row.seq));
            batch.len() - odd.len()
        }
        // Each part on pages of its own.
        Division::Halves => {
            let middle = batch.len() / 2;
            batch.select_nth_unstable_by_key(middle, |verdict| verdict.row.seq);
            middle
        }
    }
}

/// The verdict with its error in plain ASCII, which every database's encoding can hold, and without a position; `None` if it is that already.
fn plainer(verdict: &Verdict) -> Option<Verdict> {
    let mut plain = verdict.clone();
    if matches!(plain.change, Change::DeliveredAs(_)) {
        plain.change = Change::Done;
        return Some(plain);
    }
    let error = match &mut plain.change {
        Change::Retry { error: Some(error), .. }
        | Change::RetryInPlace { error, .. }
        | Change::Rescued { error, .. }
        | Change::Dead { error, .. } => error,
        Change::Done | Change::DeliveredAs(_) | Change::Remove | Change::Retry { error: None, .. } => return None,
    };
    if error.is_ascii() {
        return None;
    }
    let mut escaped = String::with_capacity(error.len());
    for c in error.chars() {
        if c.is_ascii() { escaped.push(c) } else { escaped.extend(c.escape_unicode()) }
    }
    *error = clean_error(&escaped);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_core::event::EventId;
    use pillarbox_core::row::{Expected, Position};

    fn verdict(seq: i64, change: Change) -> Verdict {
        let row = RowId { seq, event_id: EventId::from_stored("event"), handler: None };
        Verdict { row, expected: Expected::FIRST, change }
    }

    #[test]
    fn the_parts_of_a_batch_share_no_key() {
        let batch = |len: i64| -> Vec<Verdict> { (0..len).map(|n| verdict(n * 7919 % 10_007, Change::Done)).collect() };
        let partition = |seq: i64| u8::try_from(seq % 5).expect("small");
        let partitions = |seqs: &[i64]| seqs.iter().map(|seq| Some(partition(*seq))).collect();
        let whole = batch(1000);

        let mut parts = whole.clone();
        let middle = divide(&mut parts, Division::Partitions, partitions);
        let (one, other) = parts.split_at(middle);
        assert!(one.iter().all(|verdict| partition(verdict.row.seq) % 2 == 0) && one.len() > 400, "{}", one.len());
        assert!(
            other.iter().all(|verdict| partition(verdict.row.seq) % 2 == 1) && other.len() > 200,
            "{}",
            other.len()
        );
        let place = |verdict: &Verdict| whole.iter().position(|other| other.row.seq == verdict.row.seq);
        assert!(one.is_sorted_by_key(place) && other.is_sorted_by_key(place), "each in the order in which they came");

        let middle = divide(&mut parts, Division::Halves, partitions);
        let (one, other) = parts.split_at(middle);
        assert!(one.iter().all(|low| other.iter().all(|high| low.row.seq < high.row.seq)));
        assert_eq!((one.len(), other.len()), (500, 500));
        let seqs = |verdicts: &[Verdict]| verdicts.iter().map(|verdict| verdict.row.seq).collect::<HashSet<_>>();
        assert_eq!(seqs(&parts), seqs(&whole), "none is lost");
    }

    #[test]
    fn a_batch_is_divided_where_it_is_large_and_its_keys_stay_together() {
        let batch = |len: i64| -> Vec<Verdict> { (0..len).map(|seq| verdict(seq, Change::Done)).collect() };
        for (mode, expected) in [
            (NodeMode::SingleNode, Some(Division::Halves)),
            (NodeMode::MultiNode, Some(Division::Halves)),
            (NodeMode::Partitioned, Some(Division::Partitions)),
            (NodeMode::Ordered, None),
        ] {
            assert_eq!(division(&batch(256), mode), expected, "{mode:?}");
            assert_eq!(division(&batch(255), mode), None, "{mode:?}");
        }
    }

    #[test]
    fn an_error_that_an_encoding_cannot_hold_is_spelled_out() {
        let dead = |error: &str| verdict(1, Change::Dead { attempts: 1, error: error.to_owned() });
        assert_eq!(plainer(&dead("a → b")), Some(dead("a \\u{2192} b")));
        assert_eq!(plainer(&dead("a -> b")), None, "what is plain already is not tried again");
        let long = plainer(&dead(&"→".repeat(4000))).map(|verdict| verdict.change);
        assert!(matches!(long, Some(Change::Dead { error, .. }) if error.len() <= 4000 && error.ends_with("...")));
        assert_eq!(plainer(&verdict(1, Change::Done)), None);
        let position = Position::new("→/1").expect("a position");
        assert_eq!(plainer(&verdict(1, Change::DeliveredAs(position))), Some(verdict(1, Change::Done)));
    }
}
