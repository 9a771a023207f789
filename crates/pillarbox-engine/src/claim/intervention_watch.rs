use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::ownership::Mode;
use pillarbox_core::plants;
use pillarbox_core::store::Store;
use tokio::sync::watch;

use crate::pause::jittered;
use crate::queue::InFlight;
use crate::tenure::Tenure;

/// The longest time between two looks while something is in memory: operators are promised two seconds.
const EVERY: Duration = Duration::from_millis(1900);

/// Notices that operators have cancelled pending rows, or want them to be tried now, by the number of their interventions. What waits in
/// memory is then read anew, and what sleeps there asks for its row.
///
/// A node with nothing in memory has nothing to notice, and asks nothing.
#[derive(Debug)]
pub(crate) struct InterventionWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) tenure: Tenure,
    /// Told of each change that was noticed.
    pub(crate) noticed: watch::Sender<u64>,
}

impl InterventionWatch {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        // As many had been counted before anything was read.
        let mut known = self.tenure.interventions;
        loop {
            tokio::select! {
                () = tokio::time::sleep(jittered(EVERY, &*self.random)) => {}
                () = self.in_flight.intervened() => {}
            }
            if self.in_flight.is_empty() {
                continue;
            }
            // A failure shows where the table is read, and the next look makes up for it.
            let Ok(interventions) = self.store.interventions().await else { continue };
            if interventions == known || plants::is("interventions_unnoticed_in_memory") {
                continue;
            }
            known = interventions;
            self.in_flight.begin_anew(self.tenure.mode == Mode::Ordered);
            self.noticed.send_modify(|times| *times += 1);
        }
    }
}
