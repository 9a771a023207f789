use std::borrow::Cow;

use metrics::{Counter, Gauge, Histogram, Label, Unit};
use pillarbox_core::store::StoreInfo;

/// Makes the handles of an outbox's metrics, once, when it is built: recording then looks nothing up.
#[derive(Debug)]
pub(crate) struct MetricsFactory<'a> {
    prefix: Cow<'a, str>,
    labels: Vec<Label>,
}

impl<'a> MetricsFactory<'a> {
    /// For the outbox on this table. Several outboxes of a process differ in their labels.
    pub(crate) fn new(prefix: &'a str, info: &StoreInfo) -> Self {
        let labels = vec![Label::new("database", info.address.clone()), Label::new("table", info.table.clone())];
        Self { prefix: Cow::Borrowed(prefix), labels }
    }

    /// The same, for metrics that are made later.
    pub(super) fn to_owned(&self) -> MetricsFactory<'static> {
        MetricsFactory { prefix: Cow::Owned(self.prefix.clone().into_owned()), labels: self.labels.clone() }
    }

    /// The same with another label.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut labels = self.labels.clone();
        labels.push(Label::new(name, value.to_owned()));
        Self { prefix: self.prefix.clone(), labels }
    }

    fn name(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// A number that only grows.
    pub(super) fn counter(&self, name: &str, help: &'static str) -> Counter {
        let name = self.name(name);
        metrics::describe_counter!(name.clone(), Unit::Count, help);
        metrics::counter!(name, self.labels.clone())
    }

    /// A number that goes up and down.
    pub(crate) fn gauge(&self, name: &str, unit: Unit, help: &'static str) -> Gauge {
        let name = self.name(name);
        metrics::describe_gauge!(name.clone(), unit, help);
        metrics::gauge!(name, self.labels.clone())
    }

    /// A distribution of numbers.
    pub(super) fn histogram(&self, name: &str, unit: Unit, help: &'static str) -> Histogram {
        let name = self.name(name);
        metrics::describe_histogram!(name.clone(), unit, help);
        metrics::histogram!(name, self.labels.clone())
    }
}
