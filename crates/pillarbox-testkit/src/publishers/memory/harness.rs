use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{PublishError, Publisher};

use super::{Answer, Broker, MemoryLink, MemoryPublisher};
use crate::publishers::{Arrived, PublisherCapabilities, PublisherHarness};

/// The harness of the publisher in memory.
#[derive(Debug)]
pub struct MemoryPublisherHarness {
    broker: Arc<Broker>,
    names: AtomicUsize,
}

/// Bytes of the largest body.
const LARGEST: usize = 1_000_000;

impl MemoryPublisherHarness {
    fn name(&self) -> String {
        format!("target-{}", self.names.fetch_add(1, Ordering::SeqCst))
    }
}

impl PublisherHarness for MemoryPublisherHarness {
    type Link = MemoryLink;

    const CAPABILITIES: PublisherCapabilities =
        PublisherCapabilities { deduplicates: false, ..PublisherCapabilities::ALL };

    async fn start() -> Result<Self, BoxError> {
        let targets = Mutex::new(Some(HashSet::new()));
        let broker = Arc::new(Broker { targets, largest: Some(LARGEST), ..Broker::default() });
        Ok(Self { broker, names: AtomicUsize::new(0) })
    }

    async fn link(&self) -> Result<MemoryLink, BoxError> {
        Ok(MemoryLink::default())
    }

    fn publisher(&self, link: &MemoryLink, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        Ok(Arc::new(MemoryPublisher::of(Arc::clone(&self.broker), Arc::clone(&link.way), timeout)))
    }

    fn intruder(&self, _link: &MemoryLink, timeout: Duration, _secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let publisher = MemoryPublisher::of(Arc::clone(&self.broker), Arc::default(), timeout);
        publisher.answer(Answer::Fail(PublishError::misconfigured("the password is wrong; set another")));
        Ok(Arc::new(publisher))
    }

    async fn target(&self, _link: &MemoryLink) -> Result<String, BoxError> {
        let name = self.name();
        self.broker.targets().get_or_insert_default().insert(name.clone());
        Ok(name)
    }

    fn missing_target(&self, _link: &MemoryLink) -> String {
        self.name()
    }

    fn oversize(&self) -> Option<usize> {
        Some(LARGEST + 1)
    }

    async fn arrived(&self, target: &str, _least: usize) -> Result<Vec<Arrived>, BoxError> {
        // What is confirmed is here: there is nothing to wait for.
        let kept = self.broker.kept();
        let arrived = kept.taken.iter().filter(|message| &*message.target == target).map(|message| Arrived {
            id: Some(message.id.to_string()),
            key: message.key.as_deref().map(str::to_owned),
            content_type: Some(message.content_type.clone().into_owned()),
            headers: message.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            body: message.body.to_vec(),
        });
        Ok(arrived.collect())
    }
}
