use std::collections::{BTreeMap, HashSet};

use metrics::{Gauge, Unit};
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Pause;

use super::MetricsFactory;

/// The gauges of what operators have paused, one for each type and handler that was paused while this process ran.
#[derive(Debug)]
pub(crate) struct PausedGauges {
    metrics_factory: MetricsFactory<'static>,
    /// No more than [`Pause::MAX_PAUSES`]: further ones are not shown.
    gauges: Mutex<BTreeMap<(&'static str, String), Gauge>>,
}

impl PausedGauges {
    pub(super) fn new(metrics_factory: &MetricsFactory<'_>) -> Self {
        Self { metrics_factory: metrics_factory.to_owned(), gauges: Mutex::default() }
    }

    /// Sets the gauges: 1 for what is paused, 0 for what was.
    pub(crate) fn report(&self, pauses: &[Pause]) {
        let mut gauges = self.gauges.lock();
        for Pause { kind, name, .. } in pauses {
            let key = (kind.name(), name.clone());
            if gauges.len() < Pause::MAX_PAUSES || gauges.contains_key(&key) {
                gauges.entry(key).or_insert_with(|| self.gauge(kind.name(), name));
            }
        }
        let paused: HashSet<_> = pauses.iter().map(|pause| (pause.kind.name(), &*pause.name)).collect();
        for ((kind, name), gauge) in &*gauges {
            gauge.set(f64::from(u8::from(paused.contains(&(*kind, &**name)))));
        }
    }

    /// This process knows nothing of the table.
    pub(crate) fn inactive(&self) {
        self.gauges.lock().values().for_each(|gauge| gauge.set(f64::NAN));
    }

    fn gauge(&self, kind: &str, name: &str) -> Gauge {
        let help = "1 while operators have paused the type or the handler, else 0.";
        self.metrics_factory.with("kind", kind).with("name", name).gauge("paused", Unit::Count, help)
    }
}
