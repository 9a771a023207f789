use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Publisher};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Forwarder;
use super::admission::ProbeGuard;
use super::answer::refusal;
use crate::breaker::CallResult;
use crate::route::{CheckError, RouteRuntime};

/// The time between two questions to a destination that is not there when events begin to be passed on.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The interval of the search for routes whose pause is over and that no event has tried out.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A broker, and the targets that routes send to there.
#[derive(Debug)]
pub struct Broker {
    /// The client that sends to it.
    pub publisher: Arc<dyn Publisher>,
    /// The constant targets.
    pub targets: Vec<String>,
    /// The text before the first place of each target that depends on the event, for
    /// [`Publisher::check_prefix`](pillarbox_core::publisher::Publisher::check_prefix).
    pub beginnings: Vec<String>,
}

/// The check of a broker: its publisher, the targets to ask for, and the routes that need them.
struct BrokerCheck {
    publisher: Arc<dyn Publisher>,
    targets: Vec<String>,
    runtimes: Vec<Arc<RouteRuntime>>,
}

impl BrokerCheck {
    fn error(&self, source: PublishError) -> CheckError {
        CheckError {
            kind: self.publisher.info().kind,
            address: self.publisher.info().address.clone(),
            routes: self.runtimes.iter().map(|runtime| format!("`{}`", runtime.name)).collect::<Vec<_>>().join(", "),
            source,
        }
    }

    /// The check for one route alone; `None` if it has no broker.
    fn of(runtime: &Arc<RouteRuntime>) -> Option<Self> {
        let output = runtime.output.as_ref()?;
        let targets = output.target.fixed().map(str::to_owned).into_iter().collect();
        Some(Self { publisher: Arc::clone(&output.publisher), targets, runtimes: vec![Arc::clone(runtime)] })
    }

    /// Asks for the constant beginnings of targets that depend on the event.
    async fn prefixes(&self) -> Prefixes {
        let mut found = Prefixes::default();
        for runtime in &self.runtimes {
            let Some(template) = runtime.output.as_ref().map(|output| &output.target) else { continue };
            let Some(prefix) = template.prefix() else { continue };
            let (name, shown) = (&runtime.name, self.publisher.shown(template.text()));
            match self.publisher.check_prefix(prefix).await {
                Ok(true) => {
                    let place = self.publisher.shown(prefix);
                    found.unchecked.push(format!("route `{name}`: each `{shown}`; there is a place for `{place}…`"));
                }
                Ok(false) => found.unchecked.push(format!("route `{name}`: whether `{shown}` is there")),
                Err(error) => found.errors.extend(Self::of(runtime).map(|alone| alone.error(error))),
            }
        }
        found
    }

    /// Asks until there is an answer, for at most `max_wait`.
    async fn within(&self, max_wait: Duration) -> Result<(), PublishError> {
        let deadline = Instant::now() + max_wait;
        let mut last = None;
        loop {
            match timeout_at(deadline, self.publisher.check(&self.targets)).await {
                Ok(Err(error)) if error.kind() == PublishErrorKind::Unavailable => {
                    if Instant::now() + CHECK_INTERVAL >= deadline {
                        return Err(error);
                    }
                    last = Some(error);
                }
                Ok(answer) => return answer,
                Err(_elapsed) => {
                    let silent = || PublishError::unavailable(format!("it has not answered within {max_wait:?}"));
                    return Err(last.unwrap_or_else(silent));
                }
            }
            sleep(CHECK_INTERVAL).await;
        }
    }
}

/// The targets that a check has not asked for, in words, and the errors that it found.
#[derive(Debug, Default)]
struct Prefixes {
    unchecked: Vec<String>,
    errors: Vec<CheckError>,
}

impl Forwarder {
    /// Connects to every destination and verifies that the targets of its routes are there. Of targets that depend on the event, the
    /// constant part is asked for, where the broker can tell. Returns a sentence for each target that remains unchecked.
    ///
    /// # Errors
    /// An error for each destination that is not as it has to be. For one that merely does not answer it is of kind
    /// [`Unavailable`](PublishErrorKind::Unavailable).
    pub async fn check(&self) -> Result<Vec<String>, Vec<CheckError>> {
        let checks = self.broker_checks().into_iter().map(|check| async move {
            match check.publisher.check(&check.targets).await {
                Ok(()) => check.prefixes().await,
                Err(error) => Prefixes { errors: vec![check.error(error)], unchecked: Vec::new() },
            }
        });
        let (mut unchecked, mut errors) = (Vec::new(), Vec::new());
        for prefixes in join_all(checks).await {
            unchecked.extend(prefixes.unchecked);
            errors.extend(prefixes.errors);
        }
        if errors.is_empty() { Ok(unchecked) } else { Err(errors) }
    }

    /// As [`check`](Self::check) for constant targets, before events are passed on, and with a time limit: routes whose destination does
    /// not answer within `max_wait`, or refuses, begin paused, so that they hold up no other. [`watch`](Self::watch) asks on.
    ///
    /// # Errors
    /// An error for each destination that has answered and refuses what its routes would send. Other routes can go on all the same.
    pub async fn begin(&self, max_wait: Duration) -> Result<(), Vec<CheckError>> {
        let begun = self.broker_checks().into_iter().map(|check| async move {
            let Err(error) = check.within(max_wait).await else { return Vec::new() };
            if error.kind() == PublishErrorKind::Unavailable {
                self.begin_paused(&check, &error);
                return Vec::new();
            }
            // The broker is asked for each route alone, to find those that it refuses.
            let alone = check.runtimes.iter().filter_map(BrokerCheck::of);
            let answers = join_all(alone.map(|check| async move { (check.within(max_wait).await, check) })).await;
            let mut refused = Vec::new();
            for (answer, check) in answers {
                let Err(error) = answer else { continue };
                self.begin_paused(&check, &error);
                if error.kind() != PublishErrorKind::Unavailable {
                    refused.push(check.error(error));
                }
            }
            refused
        });
        let wrong: Vec<CheckError> = join_all(begun).await.into_iter().flatten().collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn begin_paused(&self, check: &BrokerCheck, error: &PublishError) {
        for runtime in &check.runtimes {
            if let Some(output) = &runtime.output {
                self.0.learn(runtime, output, Instant::now(), refusal(error));
            }
        }
    }

    /// Tries out, by a check, the destinations of paused routes for which no event does: so that a route goes on by itself where
    /// none is left, or none has come yet. It never ends; drop it when the outbox stops.
    pub async fn watch(&self) {
        let mut asking = FuturesUnordered::new();
        let mut next = Instant::now() + PROBE_INTERVAL;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                Some(()) = asking.next() => continue,
            }
            next = Instant::now() + PROBE_INTERVAL;
            for runtime in &self.0.table().runtimes {
                let Some(output) = &runtime.output else { continue };
                output.targets.lock().forget(Instant::now());
                runtime.report();
                if output.operator_pause.lock().is_none() && output.circuit.lock().probe_unasked(Instant::now()) {
                    asking.push(self.try_out(Arc::clone(runtime)));
                }
            }
        }
    }

    async fn try_out(&self, runtime: Arc<RouteRuntime>) {
        let Some(output) = &runtime.output else { return };
        let _probing = ProbeGuard(output);
        let targets: Vec<String> = output.target.fixed().map(str::to_owned).into_iter().collect();
        let mut answer = output.publisher.check(&targets).await;
        // Without a constant target a publisher of many servers has asked none of them.
        if answer.is_ok()
            && let Some(beginning) = output.target.prefix()
        {
            answer = output.publisher.check_prefix(beginning).await.map(drop);
        }
        let called = answer.map_or_else(|error| refusal(&error), |()| CallResult::Answered);
        self.0.learn(&runtime, output, Instant::now(), called);
    }

    /// Each broker once, with the targets of its routes, in the order of the routes.
    #[must_use]
    pub fn brokers(&self) -> Vec<Broker> {
        let broker = |BrokerCheck { publisher, targets, runtimes }| {
            let beginnings = runtimes
                .iter()
                .filter_map(|runtime: &Arc<RouteRuntime>| runtime.output.as_ref()?.target.prefix().map(str::to_owned));
            Broker { publisher, targets, beginnings: beginnings.collect() }
        };
        self.broker_checks().into_iter().map(broker).collect()
    }

    /// The check of each broker, with the targets of all its routes.
    fn broker_checks(&self) -> Vec<BrokerCheck> {
        let mut all: Vec<BrokerCheck> = Vec::new();
        for check in self.0.table().runtimes.iter().filter_map(BrokerCheck::of) {
            match all.iter_mut().find(|other| Arc::ptr_eq(&other.publisher, &check.publisher)) {
                Some(other) => {
                    other.targets.extend(check.targets);
                    other.runtimes.extend(check.runtimes);
                }
                None => all.push(check),
            }
        }
        all
    }
}
