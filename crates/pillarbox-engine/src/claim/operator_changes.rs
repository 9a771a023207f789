use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::planted_bug;
use pillarbox_core::store::{Interventions, Store};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::backoff::jittered;
use crate::observe::Loops;
use crate::queue::InFlight;
use crate::tenure::Tenure;

/// The longest time between two polls while something is in memory or paused: operators are promised two seconds.
const POLL_INTERVAL: Duration = Duration::from_millis(1900);
/// The time for which a call waits for the poll before it.
const POLL_TIMEOUT: Duration = Duration::from_secs(1);

/// Notices what operators change: by the number of their interventions that they have cancelled pending rows, or want them to be tried now,
/// and by a list what they have paused. What waits in memory is then read anew, and what sleeps there asks for its row.
#[derive(Debug)]
pub(crate) struct OperatorChanges {
    store: Arc<dyn Store>,
    in_flight: Arc<InFlight>,
    mode: NodeMode,
    /// The number of interventions that were noticed.
    known: Mutex<i64>,
    /// Told of each change that was noticed.
    noticed: watch::Sender<u64>,
    loops: Arc<Loops>,
}

impl OperatorChanges {
    pub(crate) fn new(store: Arc<dyn Store>, in_flight: Arc<InFlight>, tenure: &Tenure, loops: Arc<Loops>) -> Self {
        // As many had been counted before anything was read.
        let known = Mutex::new(tenure.interventions);
        Self { store, in_flight, mode: tenure.mode, known, noticed: watch::Sender::new(0), loops }
    }

    /// Tells of each change that is noticed from now on.
    pub(crate) fn noticed(&self) -> watch::Receiver<u64> {
        self.noticed.subscribe()
    }

    /// True if the database has not been asked for so long that it has to be before a call begins.
    pub(crate) fn is_stale(&self) -> bool {
        self.in_flight.pauses().is_stale()
    }

    /// Asks the database before a call, unless somebody has since it [had to be](Self::is_stale). Where that fails or takes too long, the
    /// call goes on: mostly what it leads to could not be recorded either.
    pub(crate) async fn poll_before_a_call(&self) {
        let polling = async {
            let mut known = self.known.lock().await;
            if self.is_stale() {
                self.ask(&mut known).await;
            }
        };
        if timeout(POLL_TIMEOUT, polling).await.is_err() {
            self.in_flight.pauses().set_stale(false);
        }
    }

    /// True if the database could not be asked the last time.
    fn is_failing(&self) -> bool {
        self.loops.notice.is_failing()
    }

    /// Asks the database.
    async fn poll(&self) {
        let mut known = self.known.lock().await;
        self.ask(&mut known).await;
    }

    async fn ask(&self, known: &mut i64) {
        let was_failing = self.is_failing();
        let answer = self.loops.notice.ask(self.store.interventions()).await;
        let pauses = self.in_flight.pauses();
        pauses.set_stale(false);
        let Interventions { count, pauses: paused } = match answer {
            Ok(interventions) => interventions,
            // The next poll makes up for it.
            Err(error) => {
                if !was_failing {
                    tracing::warn!(%error, "operator changes cannot be read; the pauses known stay in force, and later pauses, resumes and cancellations are not noticed until they can; trying again");
                }
                return;
            }
        };
        if was_failing {
            tracing::info!("operator changes can be read again");
        }
        let is_paused_anew = pauses.set(paused) && !planted_bug::is_active("pauses_unnoticed_in_memory");
        let has_changed = count != *known && !planted_bug::is_active("interventions_unnoticed_in_memory");
        if !has_changed && !is_paused_anew {
            return;
        }
        *known = count;
        self.in_flight.invalidate(self.mode == NodeMode::Ordered);
        self.noticed.send_modify(|times| *times += 1);
    }
}

/// Asks every two seconds what operators have changed, while something is in memory or paused. A node of which neither is so asks nothing: it
/// has nothing to notice before its next call, and [asks before that](OperatorChanges::poll_before_a_call).
#[derive(Debug)]
pub(crate) struct OperatorChangesLoop {
    pub(crate) changes: Arc<OperatorChanges>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) random: Arc<dyn Random>,
}

impl OperatorChangesLoop {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let Self { changes, in_flight, random } = self;
        loop {
            let is_notified = tokio::select! {
                () = tokio::time::sleep(jittered(POLL_INTERVAL, &*random)) => false,
                () = in_flight.intervened() => true,
            };
            let pauses = in_flight.pauses();
            if !is_notified && pauses.is_empty() && in_flight.is_empty() && !changes.is_failing() {
                pauses.set_stale(!planted_bug::is_active("pauses_unnoticed_when_idle"));
                continue;
            }
            changes.poll().await;
        }
    }
}
