use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use pillarbox_core::clock::{Clock, SystemClock};
use pillarbox_core::error::StoreError;
use pillarbox_core::examine::{Checked, Thresholds};
use pillarbox_core::publisher::Publisher;
use pillarbox_core::store::Store;
use tokio::time::{Instant, timeout};

use crate::configuration::{self, Configuration, Look};
use crate::relay::{self, Ask, Sources};
use crate::report::Report;
use crate::{broker, outbox};

/// The limit of a statement where none is set.
const STATEMENT: Duration = Duration::from_secs(2);
/// The limit of an examination where none is set.
const RUN: Duration = Duration::from_secs(60);

/// An examination of databases and brokers. It can be run again and again.
#[derive(Debug)]
#[must_use = "a doctor does nothing until run() is called"]
pub struct Doctor {
    subjects: Vec<(String, Subject)>,
    pub(crate) thresholds: Thresholds,
    pub(crate) statement_limit: Duration,
    run_limit: Duration,
    ignored: Vec<String>,
    pub(crate) clock: Arc<dyn Clock>,
}

#[derive(Debug)]
enum Subject {
    Store(Arc<dyn Store>),
    /// A store that could not be opened, in words.
    Unreachable(String),
    Broker(Arc<dyn Publisher>, Vec<String>, Vec<String>),
    Configuration(Look),
    Relay(Ask),
}

impl Default for Doctor {
    fn default() -> Self {
        Self::new()
    }
}

impl Doctor {
    /// A doctor with nothing to examine yet.
    pub fn new() -> Self {
        Self {
            subjects: Vec::new(),
            thresholds: Thresholds::default(),
            statement_limit: STATEMENT,
            run_limit: RUN,
            ignored: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Examines an outbox. `name` is what the report calls it.
    pub fn store(mut self, name: impl Into<String>, store: Arc<dyn Store>) -> Self {
        self.subjects.push((name.into(), Subject::Store(store)));
        self
    }

    /// Reports a database that could not be opened.
    pub fn unreachable(mut self, name: impl Into<String>, error: &StoreError) -> Self {
        self.subjects.push((name.into(), Subject::Unreachable(error.to_string())));
        self
    }

    /// Examines a broker, and those of its streams, exchanges, topics or queues that `targets` name. `beginnings` are those of targets that
    /// depend on the event: whether there is a place for them is asked, where the broker can tell.
    pub fn broker(
        mut self,
        name: impl Into<String>,
        publisher: Arc<dyn Publisher>,
        targets: Vec<String>,
        beginnings: Vec<String>,
    ) -> Self {
        self.subjects.push((name.into(), Subject::Broker(publisher, targets, beginnings)));
        self
    }

    /// Compares a configuration file with the relay that works by it, as `look` finds them at each examination.
    pub fn configuration(
        mut self,
        name: impl Into<String>,
        look: impl Fn() -> BoxFuture<'static, Configuration> + Send + Sync + 'static,
    ) -> Self {
        self.subjects.push((name.into(), Subject::Configuration(Look(Arc::new(look)))));
        self
    }

    /// Asks a process that delivers, a relay or a service with routes, for its sources at each examination.
    pub fn relay(
        mut self,
        name: impl Into<String>,
        ask: impl Fn() -> BoxFuture<'static, Sources> + Send + Sync + 'static,
    ) -> Self {
        self.subjects.push((name.into(), Subject::Relay(Ask(Arc::new(ask)))));
        self
    }

    /// Sets the limits from which on a condition is a finding.
    pub fn thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// Sets the limit of each statement. Default: 2 s.
    pub fn statement_limit(mut self, limit: Duration) -> Self {
        self.statement_limit = limit;
        self
    }

    /// Sets the limit of an examination. Default: 60 s.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    /// Leaves out findings of this code, which are known and accepted.
    pub fn ignore(mut self, code: impl Into<String>) -> Self {
        self.ignored.push(code.into());
        self
    }

    /// Sets the clock that databases are compared with. Default: that of the operating system.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Examines all subjects at once, and each of them check by check. It ends within the limit.
    pub async fn run(&self) -> Report {
        self.run_within(self.run_limit).await
    }

    /// As [`run`](Self::run), within the shorter of this limit and its own: for who cannot wait as long. What was found by then is
    /// reported, with a finding for each subject whose examination has not ended.
    pub async fn run_within(&self, limit: Duration) -> Report {
        let (began, limit) = (Instant::now(), limit.min(self.run_limit));
        let all = self
            .subjects
            .iter()
            .map(|(name, subject)| async move { (name.clone(), self.examine(subject, limit).await) });
        let subjects = join_all(all).await;
        Report::of(subjects, &self.ignored, began.elapsed())
    }

    /// Closes the connections of all subjects.
    pub async fn close(&self) {
        let all = self.subjects.iter().map(|(_, subject)| async move {
            match subject {
                Subject::Store(store) => store.close().await,
                Subject::Broker(publisher, ..) => publisher.close().await,
                Subject::Unreachable(_) | Subject::Configuration(_) | Subject::Relay(_) => {}
            }
        });
        join_all(all).await;
    }

    /// Findings made by then are reported though a later check takes too long.
    async fn examine(&self, subject: &Subject, limit: Duration) -> Vec<Checked> {
        let mut results = Vec::new();
        let examination: BoxFuture<'_, ()> = match subject {
            Subject::Store(store) => Box::pin(outbox::examine(self, store, &mut results)),
            Subject::Broker(publisher, targets, beginnings) => {
                Box::pin(broker::examine(self, &**publisher, targets, beginnings, &mut results))
            }
            Subject::Configuration(Look(look)) => {
                Box::pin(async { results.extend(configuration::judge(look().await)) })
            }
            Subject::Relay(Ask(ask)) => Box::pin(async { results.extend(relay::judge(ask().await)) }),
            Subject::Unreachable(error) => return vec![outbox::UNREACHABLE.found(error)],
        };
        if timeout(limit, examination).await.is_err() {
            let made = results.len();
            results.push(
                outbox::UNFINISHED.found(format!("it did not end within {limit:?}; checks made by then: {made}")),
            );
        }
        results
    }
}
