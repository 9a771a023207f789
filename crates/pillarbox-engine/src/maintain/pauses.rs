use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{
    Admin, EventFilter, FIRST_PAGE, NewPause, Pause, PauseChange, PauseKind, PendingFilter, Record, operation,
};

use crate::queue::Intake;

/// The pending rows of a key that are searched for one that is paused.
const MAX_ROWS_OF_KEY: usize = 100;

/// The event types and handlers that are paused for the whole fleet: no call of theirs begins on any node.
///
/// Get it from a running [`Outbox`](crate::run::Outbox::pauses), or from a store alone.
///
/// A pause is a row of its own in the database, and writers are not affected. Nodes notice it within two seconds, as long as they reach the
/// database. A call that runs goes on, and no attempt is counted. In mode `partitioned` the later events of a key wait behind one
/// whose type is paused, and in mode `ordered` all later events do. A paused handler holds the rows that are for it, and no others.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use std::time::Duration;
/// use pillarbox_engine::maintain::{PauseNote, Pauses};
/// use pillarbox_memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// let pauses = Pauses::of(&store);
/// let note = PauseNote::new().reason("the partner is down").by("anna").lasting(Duration::from_secs(7200));
/// pauses.pause_type("order.placed", &note).await?;
/// pauses.pause_handler("mailer", &PauseNote::new()).await?;
/// assert_eq!(pauses.list().await?.len(), 2);
/// assert!(pauses.resume_handler("mailer").await?);
/// assert!(!pauses.resume_handler("mailer").await?, "it was not paused");
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Pauses<'a, S: ?Sized> {
    store: &'a S,
    /// The outbox that runs here, to notice what is changed at once.
    intake: Option<&'a Intake>,
}

/// The note on a pause: its author, reason and duration. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PauseNote {
    reason: Option<String>,
    by: Option<String>,
    length: Option<Duration>,
}

impl PauseNote {
    /// Nothing is said, and the pause lasts until it is resumed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The reason, at most 1,000 characters.
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// The person or program that pauses, at most 255 characters.
    #[must_use]
    pub fn by(self, by: impl Into<String>) -> Self {
        Self { by: Some(by.into()), ..self }
    }

    /// The time after which it resumes by itself, by the database's clock: 1 ms to 3650 days.
    #[must_use]
    pub fn lasting(self, length: Duration) -> Self {
        Self { length: Some(length), ..self }
    }

    /// The words that follow the name of what is paused, as in an audit: `, for 7200s, reason the partner is down`. Empty if nothing is said.
    #[must_use]
    pub fn in_words(&self) -> String {
        let length = self.length.map(|length| format!(", for {length:?}")).unwrap_or_default();
        let reason = self.reason.as_deref().map(|reason| format!(", reason {reason}")).unwrap_or_default();
        length + &reason
    }
}

impl<'a, S: Admin + ?Sized> Pauses<'a, S> {
    /// The pauses of a store.
    pub fn of(store: &'a S) -> Self {
        Self { store, intake: None }
    }

    pub(crate) fn of_outbox(store: &'a S, intake: &'a Intake) -> Self {
        Self { store, intake: Some(intake) }
    }

    /// The pauses that have not ended: types first, by their names. At most [`Pause::MAX_PAUSES`].
    ///
    /// # Errors
    /// The database's.
    pub async fn list(&self) -> Result<Vec<Pause>, StoreError> {
        self.store.pauses().await
    }

    /// True if an event among the newest rows has this type, or is for this handler: for a word of warning, since any name may be paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn is_known(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        let mut filter = EventFilter::new();
        match kind {
            PauseKind::Type => filter.attributes.event_type = Some(name.to_owned()),
            PauseKind::Handler => filter.attributes.handler = Some(name.to_owned()),
        }
        Ok(!self.store.recent(&filter, None, 1).await?.events.is_empty())
    }

    /// The `seq` of the first pending row before this one, of the same key and handler, that a pause holds: where keys are kept in order this one
    /// waits behind it. It looks at the hundred oldest pending rows of the key, and asks for none while nothing is paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn before(&self, record: &Record) -> Result<Option<i64>, StoreError> {
        let Some(key) = record.ordering_key.as_ref().or(record.aggregate_id.as_ref()) else { return Ok(None) };
        let pauses = self.list().await?;
        if pauses.is_empty() {
            return Ok(None);
        }
        let mut filter = PendingFilter::new();
        filter.attributes.key = Some(key.clone());
        let pending = self.store.pending(&filter, FIRST_PAGE, MAX_ROWS_OF_KEY).await?;
        let mut before = pending.iter().filter(|event| event.seq < record.seq && event.handler == record.handler);
        let is_paused = |event_type: &str, handler| pauses.iter().any(|pause| pause.applies_to(event_type, handler));
        Ok(before.find(|event| is_paused(&event.event_type, event.handler.as_deref())).map(|event| event.seq))
    }

    /// Pauses an event type, named exactly. One that is paused already gets this note.
    ///
    /// # Errors
    /// A text or a time that cannot be, a thousand types and handlers that are paused already, or the database's.
    pub async fn pause_type(&self, event_type: &str, note: &PauseNote) -> Result<PauseChange, StoreError> {
        self.pause(PauseKind::Type, event_type, note).await
    }

    /// Pauses a handler that has a name. One that is paused already gets this note.
    ///
    /// # Errors
    /// As of [`pause_type`](Self::pause_type).
    pub async fn pause_handler(&self, handler: &str, note: &PauseNote) -> Result<PauseChange, StoreError> {
        self.pause(PauseKind::Handler, handler, note).await
    }

    /// Pauses an event type or a handler. One that is paused already gets this note.
    ///
    /// # Errors
    /// As of [`pause_type`](Self::pause_type).
    pub async fn pause(&self, kind: PauseKind, name: &str, note: &PauseNote) -> Result<PauseChange, StoreError> {
        let PauseNote { reason, by, length } = note.clone();
        let pause = NewPause { kind, name: name.to_owned(), by, reason, length };
        let refused = |problem: String| Err(StoreError::new(StoreErrorKind::Config, operation::PAUSE, problem));
        if let Err(error) = pause.check() {
            return refused(error.to_string());
        }
        let change = self.store.pause(&pause).await?;
        if change == PauseChange::TooMany {
            let most = Pause::MAX_PAUSES;
            return refused(format!(
                "pause.{kind}: {most} types and handlers are paused, and no more can be; resume some (`pillarbox pauses` lists them)"
            ));
        }
        self.notify();
        Ok(change)
    }

    /// Resumes an event type; false if it was not paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn resume_type(&self, event_type: &str) -> Result<bool, StoreError> {
        self.resume(PauseKind::Type, event_type).await
    }

    /// Resumes a handler; false if it was not paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn resume_handler(&self, handler: &str) -> Result<bool, StoreError> {
        self.resume(PauseKind::Handler, handler).await
    }

    /// Resumes an event type or a handler; false if it was not paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        let was_paused = self.store.resume(kind, name).await?;
        self.notify();
        Ok(was_paused)
    }

    fn notify(&self) {
        if let Some(intake) = self.intake {
            intake.intervened.notify_one();
        }
    }
}
