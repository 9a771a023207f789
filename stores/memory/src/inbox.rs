//! The messages that consumers have received: those of committed transactions, and those that open ones have recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::hash::HashMap;
use pillarbox_core::store::InboxConsumer;

use super::tables::Tables;

/// A message of a consumer: the consumer's name, and the message's id.
pub(super) type Message = (Box<str>, Box<str>);

/// The inbox, the locks on its rows included.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox {
    received: BTreeMap<Message, Timestamp>,
    /// The messages that open transactions have recorded, by the number of each.
    open: HashMap<Message, u64>,
    /// The transactions that wait, and the one that each waits for.
    waiting: HashMap<u64, u64>,
}

/// The answer to a transaction that wants to record a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is recorded.
    First,
    /// It was there.
    Again,
    /// Another transaction has recorded it and is open.
    Wait,
    /// That one waits for this one.
    Deadlock,
}

impl Inbox {
    /// Records a message for an open transaction, unless it is there.
    pub(super) fn record(&mut self, message: &Message, transaction: u64) -> Answer {
        if self.received.contains_key(message) {
            return Answer::Again;
        }
        match self.open.get(message) {
            None => {
                self.open.insert(message.clone(), transaction);
                Answer::First
            }
            Some(holder) if *holder == transaction => Answer::Again,
            Some(holder) => {
                let mut others = std::iter::successors(Some(*holder), |other| self.waiting.get(other).copied());
                if others.any(|other| other == transaction) {
                    return Answer::Deadlock;
                }
                self.waiting.insert(transaction, *holder);
                Answer::Wait
            }
        }
    }

    /// Makes messages that a transaction has recorded visible.
    pub(super) fn commit(&mut self, messages: Vec<(Message, Timestamp)>) {
        for (message, at) in messages {
            self.open.remove(&message);
            self.received.insert(message, at);
        }
    }

    /// Forgets messages of a transaction that is rolled back.
    pub(super) fn release(&mut self, messages: &[(Message, Timestamp)]) {
        for (message, _) in messages {
            self.open.remove(message);
        }
    }

    /// Forgets all open transactions.
    pub(super) fn lose_transactions(self) -> Self {
        Self { received: self.received, ..Self::default() }
    }

    pub(super) fn consumers(&self, after: Option<&str>, limit: usize, now: Timestamp) -> Vec<InboxConsumer> {
        let mut oldest = BTreeMap::<&str, Timestamp>::new();
        let behind = self.received.iter().filter(|((name, _), _)| after.is_none_or(|after| **name > *after));
        for ((name, _), at) in behind {
            oldest.entry(name).and_modify(|oldest| *oldest = (*oldest).min(*at)).or_insert(*at);
        }
        let consumer = |(name, at): (&str, _)| InboxConsumer { name: name.to_owned(), oldest: now.since(at) };
        oldest.into_iter().take(limit).map(consumer).collect()
    }

    pub(super) fn count(&self, consumer: &str) -> u64 {
        (self.of(consumer).count() as u64).min(InboxConsumer::COUNTED_UP_TO)
    }

    /// Deletes the oldest messages of a consumer.
    pub(super) fn purge(&mut self, consumer: &str, older_than: Duration, limit: usize, now: Timestamp) -> u64 {
        let mut old: Vec<(Timestamp, Message)> = self
            .of(consumer)
            .filter(|(_, at)| now.since(**at) >= older_than)
            .map(|(old, at)| (*at, old.clone()))
            .collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, message) in &old {
            self.received.remove(message);
        }
        old.len() as u64
    }

    fn of(&self, consumer: &str) -> impl Iterator<Item = (&Message, &Timestamp)> {
        let first = (Box::from(consumer), Box::from(""));
        self.received.range(first..).take_while(move |((name, _), _)| **name == *consumer)
    }
}

/// A transaction that waits for another one. Dropping it ends the wait.
pub(super) struct Waiting<'a> {
    pub(super) tables: &'a Tables,
    pub(super) transaction: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.tables.lock().inbox.waiting.remove(&self.transaction);
    }
}
