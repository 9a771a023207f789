use std::time::Duration;

use rumqttc::{AsyncClient, EventLoop};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{self, End};

/// One connection, driven by a task that ends with it. The client would connect again by itself, and send again what was not
/// acknowledged; here that is for the next call to decide, so a session ends with its first failure.
pub(crate) struct Session {
    pub(crate) client: AsyncClient,
    /// The largest packet that the broker takes, in bytes.
    pub(crate) max_packet: Option<u32>,
    /// The reason why it ended, once it has. Without a sender it has ended too.
    end: watch::Receiver<Option<End>>,
    /// Aborted when the session is dropped.
    _driver: JoinSet<()>,
}

impl Session {
    pub(crate) fn new(client: AsyncClient, events: EventLoop, max_packet: Option<u32>, address: String) -> Self {
        let (ended, end) = watch::channel(None);
        let mut driver = JoinSet::new();
        driver.spawn(drive(events, ended, address));
        Self { client, max_packet, end, _driver: driver }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.borrow().is_none() && self.end.has_changed().is_ok()
    }

    /// The reason why it ended, or a lost connection if none is known.
    pub(crate) fn end(&self) -> End {
        self.end.borrow().clone().unwrap_or_else(End::without_a_reason)
    }

    /// Waits for something that the connection is to bring, and no longer than the connection lives: the client keeps unsent messages, and their
    /// callers waiting, for as long as the client itself is there.
    pub(crate) async fn alive<T>(&self, awaited: impl Future<Output = T>) -> Result<T, End> {
        let mut end = self.end.clone();
        tokio::select! {
            // An acknowledgement counts, even if the connection has ended since.
            biased;
            outcome = awaited => Ok(outcome),
            _ = end.wait_for(Option::is_some) => Err(self.end()),
        }
    }

    /// Ends the connection in the protocol's way.
    pub(crate) async fn say_goodbye(&self, limit: Duration) {
        let goodbye = async {
            if self.client.disconnect_now().await.is_ok() {
                // Even if that fails, the connection has ended once the sender of its end is gone.
                let mut end = self.end.clone();
                while end.changed().await.is_ok() {}
            }
        };
        // A broker that does not listen is left anyway.
        let _ = timeout(limit, goodbye).await;
    }
}

async fn drive(mut events: EventLoop, ended: watch::Sender<Option<End>>, address: String) {
    loop {
        if let Err(error) = events.poll().await {
            // Told before the event loop is dropped, and with it every call that waits for an acknowledgement.
            ended.send_replace(Some(error::end(&error, &address)));
            return;
        }
    }
}
