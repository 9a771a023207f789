use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{BrokenRow, Row};
use tokio::time::{Instant, sleep};

/// The length of a window: after its first lines the log keeps silent for the rest of it, and then reports the remainder.
const WINDOW: Duration = Duration::from_secs(10);
/// Windows that are kept apart. Event types may come from the table, which can hold any number of them; those beyond share a
/// window.
const MAX_WINDOWS: usize = 256;

/// Logs each failure of an event, throttled by kind, handler and event type: the first ones of a window get a line each, the
/// remainder gets one line when the window is over.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    windows: Mutex<HashMap<Key, Window>>,
}

/// The consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Consequence {
    /// Another attempt.
    Retried,
    /// DONE by a fallback.
    Rescued,
    /// Left pending, since no handler takes it.
    Parked,
    /// DEAD.
    Dead,
}

/// A failure, as it is logged.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    seq: i64,
    id: Option<EventId>,
    event_type: Box<str>,
    handler: Option<Box<str>>,
    /// The trace that the event was written in, if any.
    trace_id: Option<Box<str>>,
    /// The number of the attempt; `None` if no handler was called.
    attempt: Option<u32>,
    /// `None` if there is no other.
    next_attempt_in: Option<Duration>,
    error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    consequence: Consequence,
    event_type: Box<str>,
    handler: Option<Box<str>>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// Lines it may still log one by one.
    room: u32,
    unreported: u64,
    /// The first failure that has no line yet.
    example: Option<Failed>,
}

/// A line that is due.
struct Line {
    consequence: Consequence,
    /// True if it speaks of what had no line of its own when it failed.
    is_remainder: bool,
    events: u64,
    failed: Failed,
}

impl Failed {
    pub(crate) fn new(row: &Row, attempt: Option<u32>, next_attempt_in: Option<Duration>, error: String) -> Self {
        Self {
            seq: row.seq,
            id: Some(row.event.id().clone()),
            event_type: row.event.event_type().into(),
            handler: row.handler.clone(),
            trace_id: row.event.headers().trace_id().map(Into::into),
            attempt,
            next_attempt_in,
            error,
        }
    }

    /// A row that makes no event. Whatever stands in its columns may be what is wrong with it, so only an id that could be one is told.
    pub(crate) fn broken(row: &BrokenRow, error: String) -> Self {
        Self {
            seq: row.seq,
            id: EventId::new(row.event_id.as_str()).ok(),
            event_type: "".into(),
            handler: None,
            trace_id: None,
            attempt: None,
            next_attempt_in: None,
            error,
        }
    }
}

impl FailureLog {
    /// Logs a failure, or counts it for the line that speaks of the remainder.
    pub(crate) fn report(&self, consequence: Consequence, failed: Failed) {
        let lines = {
            let mut windows = self.windows.lock();
            let now = Instant::now();
            let mut key = Key { consequence, event_type: failed.event_type.clone(), handler: failed.handler.clone() };
            if windows.len() >= MAX_WINDOWS && !windows.contains_key(&key) {
                key = Key { consequence, event_type: "".into(), handler: None };
            }
            let window = windows.entry(key).or_insert_with(|| Window::new(now, consequence));
            let mut lines = Vec::new();
            if now >= window.began + WINDOW {
                lines.extend(window.remainder(consequence));
                *window = Window::new(now, consequence);
            }
            if window.room > 0 {
                window.room -= 1;
                lines.push(Line { consequence, is_remainder: false, events: 1, failed });
            } else {
                window.unreported += 1;
                window.example.get_or_insert(failed);
            }
            lines
        };
        lines.into_iter().for_each(Line::log);
    }

    /// Logs the remainders of windows that are over, until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            sleep(WINDOW).await;
            self.flush_over();
        }
    }

    /// Logs every remainder now, and begins anew.
    pub(crate) fn flush(&self) {
        let windows = std::mem::take(&mut *self.windows.lock());
        windows.into_iter().filter_map(|(key, mut window)| window.remainder(key.consequence)).for_each(Line::log);
    }

    /// Logs the remainders of windows that are over.
    fn flush_over(&self) {
        let (mut lines, now) = (Vec::new(), Instant::now());
        let mut windows = self.windows.lock();
        windows.retain(|key, window| {
            if now < window.began + WINDOW {
                return true;
            }
            let Some(line) = window.remainder(key.consequence) else { return false };
            lines.push(line);
            // A failure that goes on has had its line for the window that begins.
            *window = Window { room: 0, ..Window::new(now, key.consequence) };
            true
        });
        drop(windows);
        lines.into_iter().for_each(Line::log);
    }
}

impl Window {
    fn new(began: Instant, consequence: Consequence) -> Self {
        Self { began, room: consequence.lines(), unreported: 0, example: None }
    }

    fn remainder(&mut self, consequence: Consequence) -> Option<Line> {
        let events = std::mem::take(&mut self.unreported);
        // By now it may have been tried again, and may be over.
        let late = |failed: Failed| Failed { next_attempt_in: None, ..failed };
        self.example.take().map(|failed| Line { consequence, is_remainder: true, events, failed: late(failed) })
    }
}

impl Consequence {
    /// Lines of a window that each speak of one event. Somebody has to look at DEAD events, so more of them are named.
    const fn lines(self) -> u32 {
        match self {
            Self::Retried | Self::Rescued | Self::Parked => 1,
            Self::Dead => 10,
        }
    }

    /// The text of its lines.
    const fn sentence(self) -> &'static str {
        match self {
            Self::Retried => "an attempt failed; the event is tried again",
            Self::Rescued => "the handler failed for good; its fallback made the event DONE",
            Self::Parked => "nobody takes the event; it stays pending, and is looked at again",
            Self::Dead => "the event is DEAD, until it is replayed or discarded",
        }
    }
}

impl Line {
    fn log(self) {
        let Self { consequence, is_remainder, events, failed } = self;
        let Failed { seq, id, event_type, handler, trace_id, attempt, next_attempt_in, error } = failed;
        let (event_id, event_type) =
            (id.as_ref().map(EventId::as_str), Some(&*event_type).filter(|name| !name.is_empty()));
        let (handler, next_attempt_in) = (handler.as_deref(), next_attempt_in.map(tracing::field::debug));
        let trace_id = trace_id.as_deref();
        // With several events, the one that is shown is the first of them.
        let message = if is_remainder && consequence == Consequence::Retried {
            "an attempt failed since the last line of its kind; its event was to be tried again"
        } else {
            consequence.sentence()
        };
        if consequence == Consequence::Dead {
            tracing::error!(
                events,
                event_id,
                seq,
                event_type,
                handler,
                trace_id,
                attempt,
                next_attempt_in,
                error,
                "{message}"
            );
        } else {
            tracing::warn!(
                events,
                event_id,
                seq,
                event_type,
                handler,
                trace_id,
                attempt,
                next_attempt_in,
                error,
                "{message}"
            );
        }
    }
}
