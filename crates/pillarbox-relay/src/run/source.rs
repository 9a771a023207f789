use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pillarbox_core::clock::{Random as _, SystemRandom};
use pillarbox_core::lock::Mutex;
use pillarbox_core::publisher::PublishError;
use pillarbox_core::store::{Store, refusal};
use pillarbox_doctor::Doctor;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::{Drained, Outbox, StartError, start_unless};
use pillarbox_routes::{Broker, CheckError, Forwarder, RouteState};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::file::{OnUnavailable, RelayFile, Source};
use crate::relay::RelayError;
use crate::report::{SourceHealth, SourceReport};

/// The time to wait for brokers at the start; the routes of a broker that has not answered by then begin paused.
const BROKER_WAIT: Duration = Duration::from_secs(2);
/// The shortest time between a failed start of a source and the next one.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest time between a failed start of a source and the next one.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// A source at work, as its task and the endpoint share it.
#[derive(Debug)]
pub(super) struct SourceTask {
    pub(super) source: Arc<Source>,
    pub(super) forwarder: Forwarder,
    state: Mutex<State>,
    /// Its brokers have answered, or had their time.
    pub(super) begun: CancellationToken,
    /// Tells it to stop.
    pub(super) stop: CancellationToken,
    /// It has stopped.
    pub(super) ended: CancellationToken,
    /// The rows that it has left, once it was drained.
    drained: OnceLock<Drained>,
}

#[derive(Debug)]
enum State {
    Starting,
    Waiting { problem: String },
    Started { store: Arc<dyn Store>, outbox: Outbox },
}

/// The conditions under which a source begins.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) file: Arc<RelayFile>,
    pub(super) batch: usize,
    /// True if a source that cannot start ends the relay: at the start of the relay, not after a reload.
    pub(super) may_end: bool,
    /// Another incarnation of it, which has to stop first.
    pub(super) after: Option<Arc<SourceTask>>,
}

impl SourceTask {
    pub(super) fn new(source: Arc<Source>, forwarder: Forwarder) -> Self {
        Self {
            source,
            forwarder,
            state: Mutex::new(State::Starting),
            begun: CancellationToken::new(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            drained: OnceLock::new(),
        }
    }

    /// The span of every log line that belongs to it, at any level.
    pub(super) fn span(&self) -> tracing::Span {
        tracing::error_span!(parent: None, "deliver", source = &*self.source.name)
    }

    /// Delivers until it is told to stop, then stops in order.
    ///
    /// # Errors
    /// It cannot start, and that ends the relay.
    pub(super) async fn run(self: Arc<Self>, beginning: Beginning) -> Result<(), RelayError> {
        let _ended = self.ended.clone().drop_guard();
        if let Some(before) = &beginning.after {
            before.ended.cancelled().await;
        }
        let Some((store, outbox)) = Box::pin(self.start(beginning, self.stop.cancelled())).await? else {
            return Ok(());
        };
        self.set(State::Started { store: Arc::clone(&store), outbox: outbox.clone() });
        let _stopped = self.stop.run_until_cancelled(self.forwarder.watch()).await;
        outbox.shutdown().await;
        store.close().await;
        Ok(())
    }

    /// Delivers until nothing is due any more or the deadline comes, then stops in order. Told to stop, it does so before.
    ///
    /// # Errors
    /// It could not start before the deadline, or what is left could not be counted.
    pub(super) async fn drain(self: Arc<Self>, beginning: Beginning, deadline: Instant) -> Result<(), RelayError> {
        let _ended = self.ended.clone().drop_guard();
        let until = async { drop(timeout_at(deadline, self.stop.cancelled()).await) };
        let Some((store, outbox)) = Box::pin(self.start(beginning, until)).await? else {
            return if self.stop.is_cancelled() { Ok(()) } else { Err(self.not_started()) };
        };
        self.set(State::Started { store: Arc::clone(&store), outbox: outbox.clone() });
        let watching = CancellationToken::new();
        let draining = async {
            let left = outbox.drain(deadline.saturating_duration_since(Instant::now())).await;
            watching.cancel();
            left
        };
        let told = async {
            if watching.run_until_cancelled(self.stop.cancelled()).await.is_some() {
                outbox.shutdown().await;
            }
        };
        let (left, (), _watched) = tokio::join!(draining, told, watching.run_until_cancelled(self.forwarder.watch()));
        store.close().await;
        let left = left.map_err(|error| RelayError::of_source(&self.source, StartError::Store(error)))?;
        self.drained.get_or_init(|| left);
        Ok(())
    }

    /// The error of a source that was to be drained and has not started in time.
    fn not_started(&self) -> RelayError {
        let problem = match &*self.state.lock() {
            State::Waiting { problem } => problem.clone(),
            State::Starting | State::Started { .. } => "its brokers or its database have not answered yet".to_owned(),
        };
        RelayError::NotInTime { source_name: self.source.name.clone(), problem }
    }

    /// The name of the source, and the rows that it has left if it was drained.
    pub(super) fn left(&self) -> (String, Option<Drained>) {
        (self.source.name.clone(), self.drained.get().copied())
    }

    /// Starts, in as many tries as it takes; `None` if `until` is ready before, and then nothing is left behind.
    async fn start(
        &self,
        beginning: Beginning,
        until: impl Future<Output = ()>,
    ) -> Result<Option<(Arc<dyn Store>, Outbox)>, RelayError> {
        let Beginning { file, batch, may_end, after } = beginning;
        let mut until = pin!(until);
        let must_be_there = may_end && file.server.on_unavailable == OnUnavailable::Exit;
        let begun = tokio::select! {
            begun = self.forwarder.begin(BROKER_WAIT) => begun,
            () = &mut until => return Ok(None),
        };
        let refused = begun.err().and_then(|errors| errors.into_iter().next()).or_else(|| self.unavailable());
        let refused = refused.filter(|_| must_be_there);
        if let Some(error) = refused {
            return Err(RelayError::of_check(&file, error));
        }
        // It has the publishers, and a source may wait for long.
        drop(file);
        self.begun.cancel();
        let mut pause = MIN_RETRY_DELAY;
        loop {
            let error = match self.open(batch, &mut until).await {
                Ok(started) => return Ok(started),
                Err(error) => error,
            };
            let problem = refusal::of_table(&error.to_string(), &self.source.table());
            let error = RelayError::of_source(&self.source, error);
            if may_end && (must_be_there || error.is_in_the_file()) {
                return Err(error);
            }
            let next = pause.mul_f64(1.0 + SystemRandom.next_f64() / 10.0);
            tracing::warn!(
                problem,
                ?next,
                "a source cannot deliver yet; it is tried again, and the other sources go on"
            );
            self.set(State::Waiting { problem });
            if let Some(before) = &after {
                before.leaves_nobody(&self.source);
            }
            tokio::select! {
                () = sleep(next) => {}
                () = &mut until => return Ok(None),
            }
            pause = pause.saturating_mul(2).min(MAX_RETRY_DELAY);
        }
    }

    /// True while its database is open and an outbox delivers from it, or stands by.
    pub(super) fn has_started(&self) -> bool {
        matches!(&*self.state.lock(), State::Started { .. })
    }

    /// Tells the metrics, where `next` is of the same tables, that nothing is delivered after this source has stopped, though `next` is to deliver.
    fn leaves_nobody(&self, next: &Source) {
        if let State::Started { outbox, .. } = &*self.state.lock()
            && self.source.has_same_tables(next)
        {
            outbox.might_deliver();
        }
    }

    /// The error of the first route whose destination does not answer.
    fn unavailable(&self) -> Option<CheckError> {
        self.forwarder.status().into_iter().find_map(|status| match status.state {
            RouteState::Paused { problem, .. } => Some(CheckError {
                kind: status.publisher,
                address: status.address,
                routes: format!("`{}`", status.route),
                source: PublishError::unavailable(problem),
            }),
            RouteState::Delivering | RouteState::PausedByOperator { .. } => None,
        })
    }

    async fn open(
        &self,
        batch: usize,
        until: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<Option<(Arc<dyn Store>, Outbox)>, pillarbox_config::Error> {
        let store = tokio::select! {
            store = self.source.open() => store?,
            () = &mut *until => return Ok(None),
        };
        let handler = on_batch(Events::Others, batch, self.forwarder.clone()).for_any_name();
        let setup = self.source.settings.clone().outbox().store(Arc::clone(&store));
        let setup = setup.type_pause(self.forwarder.type_pause()).handler(handler).span(self.span());
        match start_unless(Box::pin(setup.start()), until).await {
            Ok(Some(outbox)) => {
                let info = store.info();
                tracing::info!(address = info.address, table = info.table, "the source delivers");
                Ok(Some((store, outbox)))
            }
            Ok(None) => {
                store.close().await;
                Ok(None)
            }
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }

    fn set(&self, state: State) {
        *self.state.lock() = state;
    }

    /// The source as the console shows it, examined by this doctor, with the settings of this file.
    pub(super) fn shown(&self, doctor: Doctor, file: &RelayFile) -> pillarbox_console::Source {
        use pillarbox_console::Source;

        let name = &*self.source.name;
        let doctor = self.forwarder.brokers().into_iter().fold(doctor, |doctor, broker| {
            let Broker { publisher, targets, beginnings } = broker;
            doctor.broker(publisher.info().address.clone(), publisher, targets, beginnings)
        });
        let source = match &*self.state.lock() {
            State::Starting => {
                Source::away(name, "its brokers and its database are asked for the first time").examined_by(doctor)
            }
            State::Waiting { problem } => Source::away(name, problem).examined_by(doctor),
            State::Started { store, outbox } => {
                Source::of_outbox(name, outbox.clone()).examined_by(doctor.store(name, Arc::clone(store)))
            }
        };
        let settings = self.source.settings_in_force().chain(file.settings_around(name));
        source.settings(settings).routes(self.forwarder.clone())
    }

    pub(super) fn report(&self) -> SourceReport {
        let (name, routes) = (self.source.name.clone(), self.forwarder.status());
        let health = match &*self.state.lock() {
            State::Starting => SourceHealth::Starting,
            State::Waiting { problem } => SourceHealth::Waiting { problem: problem.clone() },
            State::Started { store, outbox } => {
                let report = SourceReport::started(name, store.info(), outbox.health(), routes);
                return SourceReport { paused: outbox.known_pauses(), ..report };
            }
        };
        SourceReport { name, address: String::new(), table: String::new(), health, routes, paused: Vec::new() }
    }
}
