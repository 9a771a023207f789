use std::fmt;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Decode, Event, Payload};
use pillarbox_core::store::{Record, Store};
use pillarbox_core::write::{Connection, Question};
use pillarbox_engine::run::Outbox;

/// The rows of the table that are looked at: the newest.
const NEWEST: usize = 10_000;
/// The rows that are looked up at once.
const PAGE: usize = 1_000;
/// The rows whose payloads are read.
const MOST: usize = 1_000;
/// The characters of a payload in the message of a failure.
const SHOWN: usize = 300;

/// The events that a transaction has written, or that are committed, for the assertions of a test.
///
/// They are read from the table, through the test's own transaction or through the store, so that events which other programs
/// insert by SQL are among them. An assertion that fails says what was written instead, with the first 300 characters of
/// each payload.
///
/// Each event that a test expects is *taken* out; [`assert_empty`](Self::assert_empty) at the end says that nothing else was
/// written.
///
/// ```
/// use pillarbox_core::event::Envelope;
/// use pillarbox_testkit::{Recorder, TestOutbox};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
/// let mut tx = test.begin(test.store()).await?;
/// test.write(&mut tx, Envelope::builder("order.placed").key("o-1").payload_json(r#"{"total_cents": 1250}"#)).await?;
///
/// let mut written = test.written_in(&mut tx).await?; // before any commit
/// let placed = written.take_type("order.placed");
/// assert_eq!(placed.record.ordering_key.as_deref(), Some("o-1"));
/// written.assert_empty();
/// tx.rollback().await?;
/// # test.shutdown().await;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is asserted until events are taken"]
pub struct WrittenEvents {
    events: Vec<WrittenEvent>,
    /// The common trait of the events, for messages.
    origin: &'static str,
    /// True if there were more rows than those looked at.
    cut: bool,
}

/// An event as the table holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenEvent {
    /// Its row; the first, if its handlers have names.
    pub record: Record,
    /// The handlers that it was written for, if they have names: each has a row.
    pub handlers: Vec<String>,
}

impl WrittenEvent {
    /// The time from the write to the first delivery that its writer asked for; `None` if it is due at once. Once the event was
    /// tried, the time to its next attempt.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        let delay = self.record.available_at.map(|due| due.since(self.record.created_at));
        delay.filter(|delay| !delay.is_zero())
    }
}

impl WrittenEvents {
    /// Reads what a transaction has written and not committed, through that transaction: a guard of `Outbox::begin`, a
    /// transaction of the driver's own, or that of a handler, with any adapter.
    ///
    /// A row counts as this transaction's if it sees the row and the store, on a connection of its own, does not. The newest
    /// 10,000 rows are looked at. In a table that other tests write and nodes deliver from meanwhile, an event that is deleted
    /// between the two looks could be taken for one of the transaction's: give a test that asserts that nothing else was
    /// written a [table of its own](crate::unique_name).
    ///
    /// # Errors
    /// The transaction is of another database than the outbox, or is none; it has written more than 1,000 rows; or the
    /// database's error.
    pub async fn in_transaction<M, C: Connection<M>>(outbox: &Outbox, transaction: &mut C) -> Result<Self, BoxError> {
        let store = outbox.store();
        check(store, transaction)?;
        let newest = transaction.read(&store.lookup(Question::Newest(NEWEST))).await?;
        let mut seqs = newest.iter().map(|seq| seq.parse()).collect::<Result<Vec<i64>, _>>()?;
        let cut = seqs.len() == NEWEST;
        let committed = committed_among(store, &seqs).await?;
        seqs.retain(|seq| committed.binary_search(seq).is_err());
        check_number(seqs.len())?;
        let rows = transaction.read(&store.lookup(Question::Records(&seqs))).await?;
        let records = rows.iter().map(|row| Record::from_json(row)).collect::<Result<_, _>>()?;
        Ok(Self { events: by_event(records), origin: "in this transaction", cut })
    }

    /// Reads the events that are committed, whatever their state, through the store of the outbox. Those that were delivered
    /// are among them unless they are deleted at once (`delete_done`).
    ///
    /// The last 10,000 numbers that the table has given are looked at.
    ///
    /// # Errors
    /// There are more than 1,000 rows; or the database's error.
    pub async fn committed(outbox: &Outbox) -> Result<Self, BoxError> {
        let store = outbox.store();
        let highest = store.writers().await?.highest;
        let lowest = highest.saturating_sub(i64::try_from(NEWEST)? - 1).max(1);
        let seqs: Vec<i64> = (lowest..=highest).collect();
        let committed = committed_among(store, &seqs).await?;
        check_number(committed.len())?;
        let mut records = Vec::with_capacity(committed.len());
        for seq in committed {
            // It may have been deleted since.
            records.extend(store.record(seq).await?);
        }
        Ok(Self { events: by_event(records), origin: "committed", cut: lowest > 1 })
    }

    /// The events that were not taken yet, in the order in which they were written.
    #[must_use]
    pub fn events(&self) -> &[WrittenEvent] {
        &self.events
    }

    /// Takes the one event of this type, and returns what it says.
    ///
    /// # Panics
    /// There is none, or several, or its payload is not such an event.
    #[track_caller]
    pub fn take<E: Event<Codec: Decode<E>>>(&mut self) -> E {
        self.take_where(|_| true)
    }

    /// Takes the one event of this type for which `matches` is true, and returns what it says.
    ///
    /// # Panics
    /// There is none, or several, or the payload of one of this type is not such an event.
    #[track_caller]
    pub fn take_where<E: Event<Codec: Decode<E>>>(&mut self, mut matches: impl FnMut(&E) -> bool) -> E {
        let mut found = or_fail(self.decoded::<E>());
        found.retain(|(_, event)| matches(event));
        let number = found.len();
        let (place, event) = or_fail(found.pop().filter(|_| number == 1).ok_or_else(|| self.not_one(E::TYPE, number)));
        self.events.remove(place);
        event
    }

    /// Takes all events of this type, and returns what they say, in the order in which they were written.
    ///
    /// # Panics
    /// The payload of one is not such an event.
    #[track_caller]
    pub fn take_all<E: Event<Codec: Decode<E>>>(&mut self) -> Vec<E> {
        let events = or_fail(self.decoded::<E>());
        self.events.retain(|event| event.record.event_type != E::TYPE);
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// Takes the one event of this type as it is in the table: to assert on its key, its headers, its handlers or its delay, or
    /// where there is no Rust type for it.
    ///
    /// # Panics
    /// There is none, or several.
    #[track_caller]
    pub fn take_type(&mut self, event_type: &str) -> WrittenEvent {
        let of_type = |(place, event): (usize, &WrittenEvent)| (event.record.event_type == event_type).then_some(place);
        let places: Vec<usize> = self.events.iter().enumerate().filter_map(of_type).collect();
        match places[..] {
            [place] => self.events.remove(place),
            _ => or_fail(Err(self.not_one(event_type, places.len()))),
        }
    }

    /// Asserts that no event is left that was not taken.
    ///
    /// # Panics
    /// One is.
    #[track_caller]
    pub fn assert_empty(&self) {
        assert!(self.events.is_empty(), "no further event was expected {}:\n{self}", self.origin);
    }

    /// The events of a type that are left, and their places.
    fn decoded<E: Event<Codec: Decode<E>>>(&self) -> Result<Vec<(usize, E)>, String> {
        let of_type = self.events.iter().enumerate().filter(|(_, event)| event.record.event_type == E::TYPE);
        let decoded = of_type.map(|(place, event)| match event.record.decode() {
            Ok(decoded) => Ok((place, decoded)),
            Err(error) => Err(format!("{error}:\n{event}")),
        });
        decoded.collect()
    }

    /// The message of an assertion that expected one event, where `number` of that type are as it wants them.
    fn not_one(&self, event_type: &str, number: usize) -> String {
        let of_type = self.events.iter().filter(|event| event.record.event_type == event_type).count();
        let Self { origin, cut, .. } = self;
        let found = match (of_type, number) {
            (0, _) => format!("no `{event_type}` is left {origin}"),
            (_, 0) => format!("no `{event_type}` {origin} is as expected"),
            _ => format!("{number} `{event_type}` {origin} are as expected, instead of one"),
        };
        let older = if *cut { "; older rows were not looked at" } else { "" };
        format!("{found}{older}:\n{self}")
    }
}

/// Fails the test of the caller.
#[track_caller]
#[expect(clippy::panic, reason = "it is how a test fails")]
fn or_fail<T>(result: Result<T, String>) -> T {
    // A closure would name its own line.
    match result {
        Ok(value) => value,
        Err(message) => panic!("{message}"),
    }
}

/// Refuses a connection that cannot show what was written.
fn check<M, C: Connection<M>>(store: &dyn Store, transaction: &mut C) -> Result<(), BoxError> {
    let (ours, theirs) = (store.info().dialect, transaction.dialect());
    if ours != theirs {
        return Err(format!("this outbox keeps its table in {ours}, and the transaction is of {theirs}").into());
    }
    match transaction.in_transaction() {
        Some(false) => Err("no transaction is open on this connection; read what is committed by `committed`".into()),
        _ => Ok(()),
    }
}

fn check_number(rows: usize) -> Result<(), BoxError> {
    if rows <= MOST {
        return Ok(());
    }
    Err(format!(
        "there are {rows} rows to assert on, more than {MOST}; write fewer, or give the test a table of its own"
    )
    .into())
}

/// The rows that are committed, ascending.
async fn committed_among(store: &dyn Store, seqs: &[i64]) -> Result<Vec<i64>, BoxError> {
    let mut committed = Vec::new();
    for page in seqs.chunks(PAGE) {
        committed.extend(store.identify(page).await?.into_iter().map(|row| row.seq));
    }
    committed.sort_unstable();
    Ok(committed)
}

/// One event for the rows of each, in the order of the first.
fn by_event(records: Vec<Record>) -> Vec<WrittenEvent> {
    let mut events: Vec<WrittenEvent> = Vec::new();
    for record in records {
        let handler = record.handler.clone();
        match events.iter_mut().find(|event| event.record.event_id == record.event_id) {
            Some(event) => event.handlers.extend(handler),
            None => events.push(WrittenEvent { record, handlers: handler.into_iter().collect() }),
        }
    }
    events
}

impl fmt::Display for WrittenEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.events.is_empty() {
            return f.write_str("  no event");
        }
        for (place, event) in self.events.iter().enumerate() {
            let line_end = if place == 0 { "" } else { "\n" };
            write!(f, "{line_end}{event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for WrittenEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { seq, event_type, ordering_key, aggregate_id, payload, .. } = &self.record;
        write!(f, "  #{seq} {event_type}")?;
        if let Some(key) = ordering_key.as_ref().or(aggregate_id.as_ref()) {
            write!(f, ", key {key}")?;
        }
        if !self.handlers.is_empty() {
            write!(f, ", for {}", self.handlers.join(", "))?;
        }
        if let Some(delay) = self.delay() {
            write!(f, ", due in {delay:?}")?;
        }
        match payload {
            None => Ok(()),
            Some(Payload::Json(text)) => {
                let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(end, _)| end);
                write!(f, ": {}{}", &text[..end], if end < text.len() { "…" } else { "" })
            }
            Some(payload) => write!(f, ": {} bytes of {}", payload.as_bytes().len(), payload.content_type()),
        }
    }
}
