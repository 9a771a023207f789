use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pillarbox::Outbox;
use pillarbox::event::{EventId, Stamp};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::calls::Calls;
use super::lab::BenchDb;
use super::load::Load;
use super::waiting::Waiting;
use crate::failure::Failure;

/// Tasks that write one event per transaction, flat out unless they are given a rate.
#[derive(Clone)]
pub(crate) struct Writers {
    lab: Arc<dyn BenchDb>,
    load: Load,
    tasks: u16,
    /// The outbox whose guard they write through, so that it delivers from memory; without it, their transactions involve
    /// no outbox.
    pub(crate) guard: Option<Outbox>,
    /// The calls in which their commits are noted, to measure the time from each to the handler.
    pub(crate) calls: Option<Arc<Calls>>,
    /// Another process that waits for the delivery of each event.
    pub(crate) waiting: Option<Arc<Waiting>>,
    /// Events per second, of all tasks together.
    pub(crate) rate: Option<u32>,
    stopped: Arc<AtomicBool>,
    next: Arc<AtomicU32>,
    written: Arc<AtomicU64>,
}

impl Writers {
    /// Tasks that write the events of `load`.
    pub(crate) fn new(lab: &Arc<dyn BenchDb>, load: &Load, tasks: u16) -> Self {
        Self {
            lab: Arc::clone(lab),
            load: load.clone(),
            tasks,
            guard: None,
            calls: None,
            waiting: None,
            rate: None,
            stopped: Arc::default(),
            next: Arc::default(),
            written: Arc::default(),
        }
    }

    /// Lets each finish its transaction and begin no other.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Events written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Writes all events. Returns how long it took.
    pub(crate) async fn run(&self) -> Result<Duration, Failure> {
        let started = Instant::now();
        let mut tasks: JoinSet<_> = (0..self.tasks).map(|_| self.clone().write(started)).collect();
        while let Some(written) = tasks.join_next().await {
            written??;
        }
        Ok(started.elapsed())
    }

    async fn write(self, started: Instant) -> Result<(), Failure> {
        let mut waits = JoinSet::new();
        while !self.stopped.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.load.events {
                break;
            }
            if let Some(rate) = self.rate {
                // By the clock and not by pauses, so that a writer that falls behind catches up.
                sleep_until(started + Duration::from_secs(number.into()) / rate).await;
            }
            let (id, committed) = self.transact(number).await?;
            if let Some(waiting) = &self.waiting {
                waits.spawn(Arc::clone(waiting).wait(number, id, committed));
            }
            if let Some(calls) = &self.calls {
                calls.stopwatch.committed(number as usize, committed);
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        while let Some(waited) = waits.join_next().await {
            waited??;
        }
        Ok(())
    }

    /// Writes one event. Returns its id, and the time at which its commit had returned.
    async fn transact(&self, number: u32) -> Result<(EventId, Instant), Failure> {
        let id = Stamp::system().next_id();
        let event = self.load.event(number).id(id.as_str());
        if let Some(outbox) = &self.guard {
            return Ok((id, self.lab.write(outbox, event).await?));
        }
        let event = event.build().map_err(Failure::during("build an event"))?;
        self.lab.transact(false, vec![event]).await?;
        Ok((id, Instant::now()))
    }
}
