use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::{ConfirmSelectOptions, ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ErrorKind, ExchangeKind};
use tokio::time::{Instant, timeout};

use crate::connect::Socket;
use crate::route::Route;

/// One connection, the channels that wait for their next use, and the exchanges that were seen on it.
///
/// A channel is used by one call at a time: what comes back as unroutable can then be of that call only.
pub(crate) struct Session {
    connection: Connection,
    idle: Mutex<Vec<Channel>>,
    /// Publishing to an exchange that is missing closes the channel, and takes with it the confirmations of all others. So each
    /// exchange is looked for before its first message.
    seen: Mutex<HashSet<String>>,
    /// The time at which messages were sent of which the broker has acknowledged some.
    answered: Mutex<Option<Instant>>,
    /// Dropped last, after the client has been told.
    _socket: Socket,
}

/// The number of exchanges that are remembered; beyond that, all are looked for again.
const REMEMBERED: usize = 10_000;

impl Session {
    pub(crate) fn new(connection: Connection, socket: Socket) -> Self {
        Self { connection, idle: Mutex::default(), seen: Mutex::default(), answered: Mutex::default(), _socket: socket }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.status().connected()
    }

    /// True if the broker has asked for a pause, being short of memory or disk.
    pub(crate) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Remembers that the broker has answered some of the messages that were sent at `sent`.
    pub(crate) fn note_answer(&self, sent: Instant) {
        let mut answered = lock(&self.answered);
        *answered = (*answered).max(Some(sent));
    }

    /// True if the broker has answered messages that were sent at `since` or later: then this is no connection that hangs.
    pub(crate) fn has_answered_since(&self, since: Instant) -> bool {
        lock(&self.answered).is_some_and(|last| last >= since)
    }

    /// The bytes of a frame, as both sides agreed.
    pub(crate) fn frame_max(&self) -> usize {
        usize::try_from(self.connection.configuration().frame_max()).unwrap_or(usize::MAX)
    }

    /// A channel that confirms, for the caller alone.
    pub(crate) async fn channel(&self) -> lapin::Result<Channel> {
        loop {
            let Some(idle) = lock(&self.idle).pop() else { break };
            if idle.status().connected() {
                return Ok(idle);
            }
        }
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    /// A channel for a question that the broker may answer by closing it.
    pub(crate) async fn fresh_channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    /// Takes back a channel on which nothing is under way.
    pub(crate) fn give_back(&self, channel: Channel) {
        lock(&self.idle).push(channel);
    }

    /// Returns true if an exchange is there, as far as this connection remembers or the broker says.
    pub(crate) async fn has_exchange(&self, name: &str) -> lapin::Result<bool> {
        if name.is_empty() || lock(&self.seen).contains(name) {
            return Ok(true);
        }
        let found = self.has(Route { exchange: name, key: "" }).await?;
        if found {
            let mut seen = lock(&self.seen);
            if seen.len() >= REMEMBERED {
                seen.clear();
            }
            seen.insert(name.to_owned());
        }
        Ok(found)
    }

    pub(crate) fn forget_exchange(&self, name: &str) {
        lock(&self.seen).remove(name);
    }

    /// Returns true if the exchange of a route is there or, where that is the default one, the queue. Asked of the broker.
    pub(crate) async fn has(&self, route: Route<'_>) -> lapin::Result<bool> {
        // A channel of its own, since the broker closes it where the answer is no.
        let channel = self.connection.create_channel().await?;
        let answer = if route.is_a_queue() {
            let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            channel.queue_declare(route.key.into(), passive, FieldTable::default()).await.map(drop)
        } else {
            let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
            let kind = ExchangeKind::Direct;
            channel.exchange_declare(route.exchange.into(), kind, passive, FieldTable::default()).await
        };
        match answer {
            Ok(()) => Ok(true),
            Err(error) => match soft(&error) {
                Some(AMQPSoftError::NOTFOUND) => Ok(false),
                // It is there, and somebody else's alone or not to be looked at: publishing says what comes of that.
                Some(AMQPSoftError::RESOURCELOCKED | AMQPSoftError::ACCESSREFUSED) => Ok(true),
                _ => Err(error),
            },
        }
    }

    /// Ends the connection in the protocol's way.
    pub(crate) async fn say_goodbye(&self, limit: Duration) {
        // The answer of the broker makes no difference.
        let _ = timeout(limit, self.connection.close(200, "closed".into())).await;
    }
}

/// The complaint of a broker about a channel.
pub(crate) fn soft(error: &lapin::Error) -> Option<AMQPSoftError> {
    match error.kind() {
        ErrorKind::ProtocolError(error) => match error.kind() {
            AMQPErrorKind::Soft(soft) => Some(soft.clone()),
            AMQPErrorKind::Hard(_) => None,
        },
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
