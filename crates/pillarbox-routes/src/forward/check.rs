use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Publisher};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Forwarder;
use super::admission::Probing;
use super::answer::refusal;
use crate::guard::CallResult;
use crate::route::{CheckError, RouteRuntime};

/// The time between two questions to a destination that is not there when events begin to be passed on.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The interval of the search for routes whose pause is over and that no event has tried out.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A broker, and what routes send to there.
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

/// The question to a broker: its publisher, the targets to ask for, and the routes that need them.
struct Asked {
    publisher: Arc<dyn Publisher>,
    targets: Vec<String>,
    runtimes: Vec<Arc<RouteRuntime>>,
}

impl Asked {
    fn error(&self, source: PublishError) -> CheckError {
        CheckError {
            kind: self.publisher.info().kind,
            address: self.publisher.info().address.clone(),
            routes: self.runtimes.iter().map(|runtime| format!("`{}`", runtime.name)).collect::<Vec<_>>().join(", "),
            source,
        }
    }

    /// The question of one route to its broker; `None` if it has none.
    fn of(runtime: &Arc<RouteRuntime>) -> Option<Self> {
        let sink = runtime.sink.as_ref()?;
        let targets = sink.target.fixed().map(str::to_owned).into_iter().collect();
        Some(Self { publisher: Arc::clone(&sink.publisher), targets, runtimes: vec![Arc::clone(runtime)] })
    }

    /// Asks for the constant beginnings of targets that depend on the event.
    async fn prefixes(&self) -> Prefixes {
        let mut found = Prefixes::default();
        for runtime in &self.runtimes {
            let Some(template) = runtime.sink.as_ref().map(|sink| &sink.target) else { continue };
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

    /// Asks until there is an answer, for as long as there is patience.
    async fn within(&self, patience: Duration) -> Result<(), PublishError> {
        let deadline = Instant::now() + patience;
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
                    let silent = || PublishError::unavailable(format!("it has not answered within {patience:?}"));
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
    /// Connects to every destination and verifies that what its routes name is there. Of targets that depend on the event, the
    /// constant part is asked for, where the broker can tell. Returns a sentence for each target that remains unchecked.
    ///
    /// # Errors
    /// What each destination that is not as it has to be said; destinations that merely do not answer are among them, with an
    /// error of kind [`Unavailable`](PublishErrorKind::Unavailable).
    pub async fn check(&self) -> Result<Vec<String>, Vec<CheckError>> {
        let checks = self.asked().into_iter().map(|asked| async move {
            match asked.publisher.check(&asked.targets).await {
                Ok(()) => asked.prefixes().await,
                Err(error) => Prefixes { errors: vec![asked.error(error)], unchecked: Vec::new() },
            }
        });
        let (mut unchecked, mut errors) = (Vec::new(), Vec::new());
        for prefixes in join_all(checks).await {
            unchecked.extend(prefixes.unchecked);
            errors.extend(prefixes.errors);
        }
        if errors.is_empty() { Ok(unchecked) } else { Err(errors) }
    }

    /// As [`check`](Self::check) for constant targets, before events are passed on, and with patience of its own: routes whose
    /// destination does not answer within it, or refuses, begin paused, so that they hold up no other.
    /// [`watch`](Self::watch) asks on.
    ///
    /// # Errors
    /// What each destination said that has answered and refuses what its routes would send. Other routes can go on all the same.
    pub async fn begin(&self, patience: Duration) -> Result<(), Vec<CheckError>> {
        let begun = self.asked().into_iter().map(|asked| async move {
            let Err(error) = asked.within(patience).await else { return Vec::new() };
            if error.kind() == PublishErrorKind::Unavailable {
                self.begin_paused(&asked, &error);
                return Vec::new();
            }
            // Which of its routes the broker refuses shows when each is asked for alone.
            let alone = asked.runtimes.iter().filter_map(Asked::of);
            let answers = join_all(alone.map(|asked| async move { (asked.within(patience).await, asked) })).await;
            let mut refused = Vec::new();
            for (answer, asked) in answers {
                let Err(error) = answer else { continue };
                self.begin_paused(&asked, &error);
                if error.kind() != PublishErrorKind::Unavailable {
                    refused.push(asked.error(error));
                }
            }
            refused
        });
        let wrong: Vec<CheckError> = join_all(begun).await.into_iter().flatten().collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn begin_paused(&self, asked: &Asked, error: &PublishError) {
        for runtime in &asked.runtimes {
            if let Some(sink) = &runtime.sink {
                self.0.learn(runtime, sink, Instant::now(), refusal(error));
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
                let Some(sink) = &runtime.sink else { continue };
                sink.targets.lock().forget(Instant::now());
                runtime.report();
                if sink.by_hand.lock().is_none() && sink.circuit.lock().probe_unasked(Instant::now()) {
                    asking.push(self.try_out(Arc::clone(runtime)));
                }
            }
        }
    }

    async fn try_out(&self, runtime: Arc<RouteRuntime>) {
        let Some(sink) = &runtime.sink else { return };
        let _probing = Probing(sink);
        let targets: Vec<String> = sink.target.fixed().map(str::to_owned).into_iter().collect();
        let mut answer = sink.publisher.check(&targets).await;
        // Without a constant target a publisher of many servers has asked none of them.
        if answer.is_ok()
            && let Some(beginning) = sink.target.prefix()
        {
            answer = sink.publisher.check_prefix(beginning).await.map(drop);
        }
        let called = answer.map_or_else(|error| refusal(&error), |()| CallResult::Answered);
        self.0.learn(&runtime, sink, Instant::now(), called);
    }

    /// Each broker once, with what its routes send to, in the order of the routes.
    #[must_use]
    pub fn brokers(&self) -> Vec<Broker> {
        let broker = |Asked { publisher, targets, runtimes }| {
            let beginnings = runtimes
                .iter()
                .filter_map(|runtime: &Arc<RouteRuntime>| runtime.sink.as_ref()?.target.prefix().map(str::to_owned));
            Broker { publisher, targets, beginnings: beginnings.collect() }
        };
        self.asked().into_iter().map(broker).collect()
    }

    /// Each broker once, with all that its routes would send to.
    fn asked(&self) -> Vec<Asked> {
        let mut all: Vec<Asked> = Vec::new();
        for asked in self.0.table().runtimes.iter().filter_map(Asked::of) {
            match all.iter_mut().find(|other| Arc::ptr_eq(&other.publisher, &asked.publisher)) {
                Some(other) => {
                    other.targets.extend(asked.targets);
                    other.runtimes.extend(asked.runtimes);
                }
                None => all.push(asked),
            }
        }
        all
    }
}
