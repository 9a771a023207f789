use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pillarbox_core::event::Envelope;
use pillarbox_core::write::{Begin as _, Finish as _};
use pillarbox_engine::run::Outbox;
use tokio::time::sleep;

use super::World;
use super::link::Link;
use super::transaction::DriverError;
use crate::check::{Op, Written};

/// The events that a writer writes in one transaction.
struct Batch {
    before: Vec<Envelope>,
    /// Written in a savepoint, which is rolled back.
    undone: Vec<Envelope>,
    after: Vec<Envelope>,
}

impl World {
    /// Writes events until none is left to be written.
    pub(super) async fn write(&self, node: usize, outbox: &Outbox, link: &Arc<Link>) {
        let stops = || self.hosts.get(node).is_none_or(super::node::Host::stops);
        while !stops() {
            sleep(self.chance.millis(0, self.plan.writers.pause)).await;
            let Some(events) = self.take_events() else { return };
            let _writing = Writing::begin(self);
            if self.chance.permille(self.plan.writers.foreign) {
                (0..events).for_each(|_| self.insert_foreign());
                continue;
            }
            let batch = self.batch(events);
            if let Err(error) = self.transact(outbox, link, batch).await {
                link.tell_story(format_args!("a write failed: {error}"));
            }
        }
    }

    fn batch(&self, events: usize) -> Batch {
        let envelopes = |count: usize| (0..count).filter_map(|_| self.envelope(true)).collect::<Vec<_>>();
        let saves = self.chance.permille(self.plan.writers.saves);
        let undone = if saves { envelopes(self.chance.size(1, 2)) } else { Vec::new() };
        let after = if saves && events > 1 { envelopes(1) } else { Vec::new() };
        let before = if saves && self.chance.one_in(3) { Vec::new() } else { envelopes(events - after.len()) };
        Batch { before, undone, after }
    }

    async fn transact(
        &self,
        outbox: &Outbox,
        link: &Arc<Link>,
        batch: Batch,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (chance, writers) = (&self.chance, self.plan.writers);
        if chance.one_in(2) {
            return self.guarded(outbox, link, batch).await;
        }
        let mut transaction = link.begin().await?;
        let mut receipts = Vec::new();
        if !batch.before.is_empty() {
            receipts.push(outbox.write_all(&mut transaction, batch.before).await?);
        }
        if !batch.undone.is_empty() {
            transaction.savepoint()?;
            receipts.push(outbox.write_all(&mut transaction, batch.undone).await?);
            transaction.rollback_to()?;
        }
        if !batch.after.is_empty() {
            receipts.push(outbox.write_all(&mut transaction, batch.after).await?);
        }
        if chance.permille(200) {
            // A caller whose word is not to be trusted.
            receipts.iter().take(1).for_each(|receipt| outbox.notify_committed(receipt.clone()));
        }
        self.linger().await;
        if chance.permille(writers.prepares) && !self.is_healed() {
            transaction.prepare();
        } else if chance.permille(writers.rolls_back) {
            transaction.rollback().await?;
        } else if chance.one_in(3)
            && let Some(receipt) = receipts.pop()
        {
            outbox.commit(transaction, receipt).await?;
        } else {
            transaction.commit().await?;
            if chance.one_in(2) {
                receipts.into_iter().for_each(|receipt| outbox.notify_committed(receipt));
            }
        }
        Ok(())
    }

    /// Writes within a guard of the outbox.
    async fn guarded(
        &self,
        outbox: &Outbox,
        link: &Arc<Link>,
        batch: Batch,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut guard = outbox.begin(link).await?;
        if !batch.before.is_empty() {
            outbox.write_all(&mut guard, batch.before).await?;
        }
        if !batch.undone.is_empty() {
            guard.savepoint()?;
            outbox.write_all(&mut guard, batch.undone).await?;
            guard.rollback_to()?;
        }
        if !batch.after.is_empty() {
            outbox.write_all(&mut guard, batch.after).await?;
        }
        self.linger().await;
        if self.chance.permille(self.plan.writers.rolls_back) {
            guard.rollback().await?;
        } else {
            guard.commit().await?;
        }
        Ok(())
    }

    async fn linger(&self) {
        if self.chance.permille(self.plan.writers.lingers) {
            sleep(self.chance.millis(10, 3000)).await;
        }
    }

    /// Takes some of the events that are still to be written.
    fn take_events(&self) -> Option<usize> {
        let wanted = self.chance.size(1, 3);
        let taken =
            self.to_write.fetch_update(Relaxed, Relaxed, |left| (left > 0).then(|| left.saturating_sub(wanted)));
        taken.ok().map(|left| left.min(wanted))
    }

    /// The next event.
    pub(super) fn envelope(&self, named: bool) -> Option<Envelope> {
        let (chance, plan) = (&self.chance, &self.plan);
        let lane = chance.permille(plan.routing.map_or(0, |routing| routing.lane));
        let event_type = match chance.below(4) {
            0 if plan.routing.is_some() => "split",
            1 if plan.routing.is_some() => "batch",
            0 if plan.named && named => "split",
            1 if plan.batch.is_some() => "batch",
            2 if plan.transactions => "booked",
            _ => "plain",
        };
        let key = (!chance.one_in(6)).then(|| format!("k{}", chance.below(plan.keys)));
        let delay = chance.permille(plan.writers.delays).then(|| chance.millis(1, 2500));
        let (mut id, mut payload) = (String::new(), String::new());
        self.database.checker().event(|number| {
            (id, payload) = (format!("e{number}"), format!("{{\"number\":{number}}}"));
            let place = plan.routing.map_or(0, |routing| routing.place(event_type, lane));
            Written {
                key: key.clone(),
                id: id.clone(),
                payload: payload.clone(),
                delayed: delay.is_some(),
                place,
                of: None,
            }
        });
        self.database.story.tell("writer", format_args!("{id} is {event_type} of {key:?}, due in {delay:?}"));
        let mut builder = Envelope::builder(event_type).id(id).payload_json(payload);
        if let Some(key) = key {
            builder = builder.key(key);
        }
        if lane {
            builder = builder.header("lane", "x");
        }
        if let Some(delay) = delay {
            builder = builder.deliver_after(delay);
        }
        builder.build_with(&self.stamp).ok()
    }

    /// The event that a handler writes for one of its own.
    pub(super) fn effect(&self, of: (u32, u8)) -> Option<Envelope> {
        let (mut id, mut payload) = (String::new(), String::new());
        self.database.checker().event(|number| {
            (id, payload) = (format!("e{number}"), format!("{{\"number\":{number}}}"));
            Written { key: None, id: id.clone(), payload: payload.clone(), delayed: false, place: 0, of: Some(of) }
        });
        self.database.story.tell("writer", format_args!("{id} is the effect of e{}/{}", of.0, of.1));
        Envelope::builder("plain").id(id).payload_json(payload).build_with(&self.stamp).ok()
    }

    /// Inserts a row as another program does.
    fn insert_foreign(&self) {
        if !self.database.is_up() {
            return;
        }
        let key = self.chance.one_in(2).then(|| format!("k{}", self.chance.below(self.plan.keys)));
        let mut id = String::new();
        let event = self.database.checker().event(|number| {
            id = format!("e{number}");
            let event_type = if key.is_some() { "test.foreign" } else { "plain" };
            let place = self.plan.routing.map_or(0, |routing| routing.place(event_type, false));
            Written { key: key.clone(), id: id.clone(), payload: "{}".to_owned(), delayed: false, place, of: None }
        });
        let inspector = self.database.store.inspect();
        let inserted = match &key {
            Some(key) => inspector.insert_of_aggregate(&id, key),
            None => inspector.insert_three_columns(&id, "plain", "{}"),
        };
        self.database.story.tell("writer", format_args!("inserts {id} by itself: {inserted:?}"));
        self.database.executed(&Op::Foreign(event));
    }

    /// Puts a backlog into the table before anybody delivers it.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn fill(&self, link: &Arc<Link>) -> Result<(), DriverError> {
        let mut left = self.plan.backlog;
        while left > 0 {
            let count = self.chance.size(1, 20).min(left);
            left -= count;
            let envelopes = (0..count).filter_map(|_| self.envelope(false)).collect();
            let mut transaction = link.begin().await?;
            let store = Arc::clone(link);
            let written = pillarbox_core::write::insert(&*store, &mut transaction, envelopes).await;
            written.map_err(|error| DriverError::Refused(error.to_string()))?;
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// A write under way.
struct Writing<'a>(&'a World);

impl<'a> Writing<'a> {
    fn begin(world: &'a World) -> Self {
        world.writing.fetch_add(1, Relaxed);
        Self(world)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writing.fetch_sub(1, Relaxed);
    }
}
