use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use pillarbox_core::hash::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{Pause, PauseKind, Row};
use tokio::sync::watch;

/// The event types and handlers that operators have paused, as this node last knew them. Those that a route pauses by itself are in
/// [`TypePause`](crate::type_pause::TypePause).
///
/// A task that [changes](Self::set) them invalidates memory afterwards: until then memory may hold rows that are paused, and each reader of
/// the table has to notice by the [version](LeftOut::version) that its fetch is older.
#[derive(Debug)]
pub(crate) struct OperatorPauses {
    known: Mutex<Known>,
    version: AtomicU64,
    /// True if anything is paused: nearly never, and asked for every event.
    any: AtomicBool,
    /// True if the database has not been asked for so long that it has to be before a call begins.
    is_stale: AtomicBool,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    pauses: Vec<Pause>,
    types: BTreeSet<Box<str>>,
    handlers: BTreeSet<Box<str>>,
}

/// The paused types and handlers, for a fetch to leave out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// A number that rises with each change.
    pub(crate) version: u64,
    pub(crate) types: Vec<Box<str>>,
    pub(crate) handlers: Vec<Box<str>>,
}

impl Default for OperatorPauses {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            version: AtomicU64::new(0),
            any: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            changed: watch::Sender::new(0),
        }
    }
}

impl OperatorPauses {
    /// Takes over what the database has told; true if other types or handlers are paused than before.
    pub(crate) fn set(&self, pauses: Vec<Pause>) -> bool {
        let mut known = self.known.lock();
        if known.pauses == pauses {
            return false;
        }
        let names = |kind| pauses.iter().filter(move |pause| pause.kind == kind).map(|pause| (*pause.name).into());
        let (types, handlers) = (names(PauseKind::Type).collect(), names(PauseKind::Handler).collect());
        report(&known.pauses, &pauses);
        let is_other = known.types != types || known.handlers != handlers;
        *known = Known { types, handlers, pauses };
        if is_other {
            self.any.store(!known.pauses.is_empty(), SeqCst);
            self.version.fetch_add(1, SeqCst);
            self.changed.send_modify(|changes| *changes += 1);
        }
        is_other
    }

    /// The pauses, types first.
    pub(crate) fn list(&self) -> Vec<Pause> {
        self.known.lock().pauses.clone()
    }

    /// True if nothing is paused.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(SeqCst)
    }

    /// True if no call of this type for this handler may begin.
    pub(crate) fn is_paused(&self, event_type: &str, handler: Option<&str>) -> bool {
        !self.is_empty() && self.known.lock().is_paused(event_type, handler)
    }

    /// True if no call with this row may begin.
    pub(crate) fn is_row_paused(&self, row: &Row) -> bool {
        self.is_paused(row.event.event_type(), row.handler.as_deref())
    }

    /// Waits until a call with this row may begin.
    pub(crate) async fn resumed(&self, row: &Row) {
        let mut changed = self.changed.subscribe();
        while self.is_row_paused(row) {
            // The sender is this one's own.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// The types and handlers to leave out of a fetch.
    pub(crate) fn left_out(&self) -> LeftOut {
        let known = self.known.lock();
        let names = |names: &BTreeSet<Box<str>>| names.iter().cloned().collect();
        LeftOut { version: self.version(), types: names(&known.types), handlers: names(&known.handlers) }
    }

    /// A number that rises with each change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(SeqCst)
    }

    /// True if the database has to be asked before a call begins.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(SeqCst)
    }

    /// Sets whether the database has to be asked before a call begins.
    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.is_stale.store(is_stale, SeqCst);
    }
}

impl Known {
    fn is_paused(&self, event_type: &str, handler: Option<&str>) -> bool {
        self.types.contains(event_type) || handler.is_some_and(|handler| self.handlers.contains(handler))
    }
}

/// The keys that have a paused event, each with the `seq` of the lowest one. That event and the later ones of its key stay in the table.
#[derive(Debug)]
pub(crate) struct PausedKeys<K> {
    lowest: HashMap<K, i64>,
}

impl<K> Default for PausedKeys<K> {
    fn default() -> Self {
        Self { lowest: HashMap::default() }
    }
}

impl<K: Eq + Hash> PausedKeys<K> {
    /// Keeps a row in the table that `is_paused`, or that stands behind a paused one of its key. True if the row is kept.
    pub(crate) fn keep(&mut self, key: K, seq: i64, is_paused: bool) -> bool {
        if is_paused {
            let lowest = self.lowest.entry(key).or_insert(seq);
            *lowest = seq.min(*lowest);
            return true;
        }
        self.lowest.get(&key).is_some_and(|lowest| seq >= *lowest)
    }

    pub(crate) fn len(&self) -> usize {
        self.lowest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lowest.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.lowest.clear();
    }
}

/// The pauses that get a line each when many change at once, as when a node starts.
const MAX_LINES: usize = 20;

/// Logs what is paused now and was not before, and the other way round.
fn report(before: &[Pause], now: &[Pause]) {
    let (paused, resumed) = (missing_in(before, now), missing_in(now, before));
    for Pause { kind, name, until, by, reason, .. } in paused.iter().take(MAX_LINES) {
        let until = until.map(|until| until.to_string());
        tracing::warn!(%kind, name, paused_by = by, reason, until, "an operator has paused a {kind}: no call of it begins until it is resumed");
    }
    if let Some(more) = paused.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        tracing::warn!(more, "further types and handlers are paused: `pillarbox pauses` lists them");
    }
    for Pause { kind, name, by, .. } in resumed.iter().take(MAX_LINES) {
        tracing::info!(%kind, name, paused_by = by, "a {kind} that was paused is resumed");
    }
    if let Some(more) = resumed.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        tracing::info!(more, "further types and handlers that were paused are resumed");
    }
}

/// The pauses of `pauses` that are not in `others`.
fn missing_in<'a>(others: &[Pause], pauses: &'a [Pause]) -> Vec<&'a Pause> {
    let others: HashSet<_> = others.iter().map(|pause| (pause.kind, &*pause.name)).collect();
    pauses.iter().filter(|pause| !others.contains(&(pause.kind, &*pause.name))).collect()
}

#[cfg(test)]
mod tests {
    use pillarbox_core::clock::Timestamp;

    use super::*;

    fn pause(kind: PauseKind, name: &str) -> Pause {
        let since = Timestamp::from_micros(0);
        Pause { kind, name: name.to_owned(), since, until: None, by: None, reason: None }
    }

    #[test]
    fn a_type_is_paused_for_every_handler_and_a_handler_for_every_type() {
        let pauses = OperatorPauses::default();
        assert!(pauses.is_empty());
        assert!(pauses.set(vec![pause(PauseKind::Type, "a"), pause(PauseKind::Handler, "h")]));
        for (event_type, handler, is_paused) in
            [("a", None, true), ("a", Some("x"), true), ("b", Some("h"), true), ("b", None, false), ("h", None, false)]
        {
            assert_eq!(pauses.is_paused(event_type, handler), is_paused, "{event_type} for {handler:?}");
        }
    }

    #[test]
    fn a_paused_row_keeps_the_later_rows_of_its_key() {
        let mut paused = PausedKeys::default();
        assert!(!paused.keep("a", 1, false) && paused.is_empty());
        assert!(paused.keep("a", 5, true));
        for (key, seq, is_kept) in [("a", 4, false), ("a", 5, true), ("a", 6, true), ("b", 6, false)] {
            assert_eq!(paused.keep(key, seq, false), is_kept, "{key} {seq}");
        }
        assert!(paused.keep("a", 3, true) && paused.keep("a", 4, false), "an earlier one is paused as well");
        assert_eq!(paused.len(), 1);
        paused.clear();
        assert!(!paused.keep("a", 6, false));
    }

    #[test]
    fn changed_pauses_are_told_by_kind_and_name() {
        let before = [pause(PauseKind::Type, "a"), pause(PauseKind::Type, "b")];
        let now = [pause(PauseKind::Type, "b"), pause(PauseKind::Handler, "a")];
        let name = |pause: &&Pause| (pause.kind, pause.name.clone());
        assert_eq!(
            missing_in(&before, &now).iter().map(name).collect::<Vec<_>>(),
            [(PauseKind::Handler, "a".to_owned())]
        );
        assert_eq!(missing_in(&now, &before).iter().map(name).collect::<Vec<_>>(), [(PauseKind::Type, "a".to_owned())]);
    }

    #[test]
    fn another_reason_is_no_change_of_what_is_paused() {
        let pauses = OperatorPauses::default();
        assert!(pauses.set(vec![pause(PauseKind::Type, "a")]));
        let version = pauses.version();
        let why = Pause { reason: Some("broken".to_owned()), ..pause(PauseKind::Type, "a") };
        assert!(!pauses.set(vec![why]));
        assert_eq!(pauses.version(), version);
        assert!(pauses.set(Vec::new()) && pauses.version() > version && pauses.is_empty());
    }
}
