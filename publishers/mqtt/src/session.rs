use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pillarbox_core::publisher::PublishError;
use rumqttc::{AsyncClient, EventLoop};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error;

/// One connection, driven by a task that ends with it. The client would connect again by itself, and send again what was not
/// acknowledged; here that is for the next call to decide, so a session ends with its first failure.
pub(crate) struct Session {
    pub(crate) client: AsyncClient,
    /// The largest packet that the broker takes, in bytes.
    pub(crate) max_packet: Option<u32>,
    /// The reason why it ended, once it has. Without a sender it has ended too.
    end: watch::Receiver<Option<End>>,
    sizes: Sizes,
    /// Aborted when the session is dropped.
    _driver: JoinSet<()>,
}

/// The reason why a connection has ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) error: PublishError,
    /// The size of a body that the broker found too large: bytes of the largest that was under way, which was too large for certain.
    /// The client does not know this answer, and breaks off without saying which message it was for.
    pub(crate) too_large: Option<usize>,
}

/// The number of bodies of each size that are under way.
#[derive(Clone, Default)]
struct Sizes(Arc<Mutex<BTreeMap<usize, usize>>>);

/// A body that is under way until this is dropped.
pub(crate) struct UnderWay {
    sizes: Sizes,
    bytes: usize,
}

impl Session {
    pub(crate) fn new(client: AsyncClient, events: EventLoop, max_packet: Option<u32>, address: String) -> Self {
        let (ended, end) = watch::channel(None);
        let (mut driver, sizes) = (JoinSet::new(), Sizes::default());
        driver.spawn(drive(events, ended, sizes.clone(), address));
        Self { client, max_packet, end, sizes, _driver: driver }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.borrow().is_none() && self.end.has_changed().is_ok()
    }

    /// Counts a body of so many bytes as under way.
    pub(crate) fn under_way(&self, bytes: usize) -> UnderWay {
        *self.sizes.lock().entry(bytes).or_default() += 1;
        UnderWay { sizes: self.sizes.clone(), bytes }
    }

    /// The reason why it ended, or a lost connection if none is known.
    pub(crate) fn failure(&self) -> End {
        let lost = || End { error: PublishError::unavailable("the connection was lost"), too_large: None };
        self.end.borrow().clone().unwrap_or_else(lost)
    }

    /// Waits for something that the connection is to bring, and no longer than that lives: the client keeps what it has not
    /// sent, and whoever waits for that, for as long as the client itself is there.
    pub(crate) async fn alive<T>(&self, awaited: impl Future<Output = T>) -> Result<T, End> {
        let mut end = self.end.clone();
        tokio::select! {
            // What has been acknowledged has been, even if the connection has ended since.
            biased;
            outcome = awaited => Ok(outcome),
            _ = end.wait_for(Option::is_some) => Err(self.failure()),
        }
    }

    /// Ends the connection in the protocol's way.
    pub(crate) async fn say_goodbye(&self, limit: Duration) {
        let goodbye = async {
            if self.client.disconnect_now().await.is_ok() {
                // Whatever comes of it, it has ended when nobody can say anything any more.
                let mut end = self.end.clone();
                while end.changed().await.is_ok() {}
            }
        };
        // A broker that does not listen is left anyway.
        let _ = timeout(limit, goodbye).await;
    }
}

async fn drive(mut events: EventLoop, ended: watch::Sender<Option<End>>, sizes: Sizes, address: String) {
    loop {
        if let Err(error) = events.poll().await {
            let largest = sizes.lock().last_key_value().map(|(bytes, _)| *bytes);
            let too_large = largest.filter(|_| error::is_about_a_size(&error));
            // Told before the event loop is dropped, and with it everybody who waits for an acknowledgement.
            ended.send_replace(Some(End { error: error::explain(&error, &address), too_large }));
            return;
        }
    }
}

impl Sizes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut sizes = self.sizes.lock();
        if let Some(count) = sizes.get_mut(&self.bytes) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                sizes.remove(&self.bytes);
            }
        }
    }
}
