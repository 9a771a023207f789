use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::PublishError;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::NatsOptions;
use crate::connection::Connection;
use crate::servers::Servers;

/// The connection that all calls share, made when it is first needed and again when it is lost.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) options: NatsOptions,
    pub(crate) servers: Servers,
    closed: AtomicBool,
    /// Locked while somebody connects, so that there is one attempt at a time.
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    /// When the last attempt failed, and why: what those are told who waited for it.
    failure: Option<(Instant, PublishError)>,
}

impl Connector {
    pub(crate) fn new(options: NatsOptions) -> Result<Self, ConfigError> {
        options.check()?;
        let servers = Servers::of(&options)?;
        Ok(Self { options, servers, closed: AtomicBool::new(false), slot: Mutex::default() })
    }

    /// The connection, or the reason why there is none by the deadline.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, PublishError> {
        let asked = Instant::now();
        let late = || PublishError::unavailable(format!("{} did not answer in time", self.servers.shown));
        let mut slot = timeout_at(deadline, self.slot.lock()).await.map_err(|_| late())?;
        if self.closed.load(Ordering::SeqCst) {
            return Err(PublishError::unavailable("the publisher is closed"));
        }
        if let Some(connection) = slot.connection.as_ref().filter(|connection| connection.is_alive()) {
            return Ok(Arc::clone(connection));
        }
        slot.connection = None;
        if let Some((at, failure)) = &slot.failure
            && *at >= asked
        {
            return Err(failure.clone());
        }
        let opened = timeout_at(deadline, Connection::open(&self.options, &self.servers)).await;
        match opened.unwrap_or_else(|_| Err(late())) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                slot.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                slot.failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Has the next call connect anew, since this connection does not answer. Calls that wait on it go on waiting.
    pub(crate) async fn discard(&self, connection: &Arc<Connection>) {
        // If somebody is connecting, it was found dead already.
        if let Ok(mut slot) = self.slot.try_lock()
            && slot.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            slot.connection = None;
        }
    }

    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.slot.lock().await.connection = None;
    }
}
