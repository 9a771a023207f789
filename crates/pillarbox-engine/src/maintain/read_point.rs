use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::store::Store;
use tokio::time::Instant;

use crate::observe::Counters;
use crate::pause::{Pause, jittered};

/// The interval while this node settles events. Readers pass over what was settled since.
const EVERY: Duration = Duration::from_secs(2);
/// The interval after which it is raised sooner where each fetch begins there, if so many events were settled.
const SOON: (Duration, u64) = (Duration::from_millis(250), 5_000);
/// The interval while it does not: other nodes may, and have gone meanwhile.
const IDLE: Duration = Duration::from_secs(10);

/// Raising it takes at most this share of the time, however much was settled meanwhile,
const SHARE: u32 = 10;
/// unless a call took so long that its share is more than this: what is settled then would be passed over for as long.
const LONGEST: Duration = Duration::from_secs(20);

/// Raises the table's read point, for as long as this node delivers.
#[derive(Debug)]
pub(crate) struct ReadPointKeeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) random: Arc<dyn Random>,
    /// True if each fetch begins at the point, and so passes over what was settled since it was raised.
    pub(crate) begins_each_fetch: bool,
}

impl ReadPointKeeper {
    /// Runs until it is dropped. Nothing is lost by dropping a call half-way.
    pub(crate) async fn run(self) {
        let mut failing = Pause::default();
        let (mut settled, mut raised) = (None, Instant::now());
        // At once, since without a point each reader passes over all that was ever delivered.
        let mut wait = Duration::ZERO;
        loop {
            tokio::time::sleep(wait).await;
            wait = jittered(if self.begins_each_fetch { SOON.0 } else { EVERY }, &*self.random);
            let now = self.counters.settled();
            if !self.is_due(settled.map(|before| now.saturating_sub(before)), raised.elapsed()) {
                continue;
            }
            let began = Instant::now();
            match self.store.raise_read_point().await {
                Ok(_) => {
                    failing.end();
                    wait = wait.max((began.elapsed() * SHARE).min(LONGEST));
                    // One call more after the last event: what a transaction kept back may be complete then.
                    (settled, raised) = (Some(now), Instant::now());
                }
                Err(error) => {
                    if failing.is_first() {
                        tracing::warn!(%error, "the point from which the table is read stays where it is; trying again");
                    }
                    wait = failing.next(&*self.random);
                }
            }
        }
    }

    /// True if it is time: so much was `settled` since it was last raised, if it was, and so much time has passed.
    fn is_due(&self, settled: Option<u64>, passed: Duration) -> bool {
        match settled {
            None => true,
            Some(0) => passed >= IDLE,
            Some(settled) => !self.begins_each_fetch || settled >= SOON.1 || passed >= EVERY,
        }
    }
}
