use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::error::{StartError, StoreErrorKind};
use pillarbox_core::handle::on_any_batch;
use pillarbox_core::observe::Health;
use pillarbox_core::run::Outbox;
use pillarbox_core::store::Store;
use pillarbox_routes::{CheckError, Forwarder, RouteStatus};
use tracing::Instrument as _;

use crate::file::Source;
use crate::serve::{Endpoint, ServeError};
use crate::{FileError, Preview, RelayFile};

/// How long brokers are waited for at the start; the routes of one that has not answered by then begin paused.
const PATIENCE: Duration = Duration::from_secs(2);

/// Delivers from databases to brokers.
#[derive(Debug)]
pub struct Relay {
    file: RelayFile,
    forwarders: Vec<Forwarder>,
}

/// Why a relay cannot start, or what its check has found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The configuration file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Routes that cannot be.
    #[error("source `{source_name}`: {error}")]
    Route {
        /// Whose.
        source_name: String,
        /// Which, and what to do.
        error: pillarbox_routes::RouteError,
    },
    /// A source whose database or tables are not as they have to be.
    #[error("source `{source_name}`: {error}")]
    Source {
        /// Which.
        source_name: String,
        /// What is wrong.
        error: Box<pillarbox_config::Error>,
    },
    /// A broker that refuses what its routes would send.
    #[error(transparent)]
    Destination(#[from] CheckError),
    /// The endpoint for health, status and metrics.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl RelayError {
    /// Whether the file has to be changed, so that trying again is in vain.
    #[must_use]
    pub fn is_in_the_file(&self) -> bool {
        use pillarbox_config::Error;
        match self {
            Self::File(_) | Self::Route { .. } => true,
            Self::Source { error, .. } => match &**error {
                Error::Start(StartError::Config(_)) => true,
                Error::Start(StartError::Store(error)) => error.kind() == StoreErrorKind::Config,
                Error::Start(_) => false,
                _ => true,
            },
            Self::Destination(_) | Self::Serve(_) => false,
        }
    }
}

/// An outbox that delivers, and what it delivers through.
#[derive(Debug)]
struct Running {
    name: String,
    store: Arc<dyn Store>,
    outbox: Outbox,
    forwarder: Forwarder,
}

/// What there is to tell of a source.
#[derive(Debug)]
pub(crate) struct SourceReport {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) table: String,
    pub(crate) health: Health,
    pub(crate) routes: Vec<RouteStatus>,
}

impl Relay {
    /// Makes what a file names. Nobody is asked yet.
    ///
    /// # Errors
    /// Routes that cannot be.
    pub fn new(file: RelayFile) -> Result<Self, RelayError> {
        let forwarders = forwarders(&file)?;
        Ok(Self { file, forwarders })
    }

    /// Asks every database whether its tables are there, and every broker whether it takes what is to be sent, as far as it can
    /// tell. Nothing is sent and nothing is changed. Returns all that is wrong.
    pub async fn check(&self) -> Vec<RelayError> {
        let mut errors: Vec<RelayError> = Vec::new();
        for source in &self.file.sources {
            let failed = |error| RelayError::Source { source_name: source.name.clone(), error: Box::new(error) };
            match source.open().await {
                Err(error) => errors.push(failed(error)),
                Ok(store) => {
                    if let Err(error) = store.check().await {
                        errors.push(failed(pillarbox_config::Error::Start(error.into())));
                    }
                    store.close().await;
                }
            }
        }
        let checked = join_all(self.forwarders.iter().map(Forwarder::check)).await;
        let mut seen: Vec<CheckError> = Vec::new();
        for error in checked.into_iter().filter_map(Result::err).flatten() {
            // Sources share their publishers.
            if !seen.contains(&error) {
                seen.push(error);
            }
        }
        errors.extend(seen.into_iter().map(RelayError::from));
        join_all(self.forwarders.iter().map(Forwarder::close)).await;
        errors
    }

    /// What a check cannot ask for, a sentence each: targets that depend on the event.
    #[must_use]
    pub fn unchecked(&self) -> Vec<String> {
        let mut unchecked: Vec<String> = Vec::new();
        for route in self.forwarders.iter().flat_map(Forwarder::unchecked) {
            if !unchecked.contains(&route) {
                unchecked.push(route);
            }
        }
        unchecked
    }

    /// Where each pending event would go. Nothing is delivered, and no node joins.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn preview(&self, limit: usize) -> Result<Preview, RelayError> {
        let mut preview = Preview::default();
        for (source, forwarder) in self.file.sources.iter().zip(&self.forwarders) {
            let failed = |error| RelayError::Source { source_name: source.name.clone(), error: Box::new(error) };
            let store = source.open().await.map_err(failed)?;
            let added = preview.add(&source.name, &*store, forwarder, limit).await;
            store.close().await;
            added.map_err(|error| failed(pillarbox_config::Error::Start(error.into())))?;
        }
        Ok(preview)
    }

    /// Delivers until `stop` is ready, then ends in order: what is on its way is waited for, as long as each source's
    /// `shutdown.drain_timeout` says.
    ///
    /// A broker that refuses what its routes would send is an error; the routes of one that does not answer at once begin paused,
    /// and hold up no others.
    ///
    /// # Errors
    /// Whatever keeps it from starting; nothing is left running then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), RelayError> {
        tokio::pin!(stop);
        let endpoint = Endpoint::open(self.file.server.listen).await?;
        // A metric counts nothing whose handle was made before there was somebody to count, as those of `new` were.
        self.forwarders = forwarders(&self.file)?;
        // Probes are answered from the first moment: a relay that waits for a broker is alive, and not ready.
        let sources: Arc<OnceLock<Vec<Running>>> = Arc::default();
        let reports = {
            let sources = Arc::clone(&sources);
            Arc::new(move || sources.get().map(|running| running.iter().map(Running::report).collect()))
        };
        let serving = endpoint.serve(reports);
        let started = tokio::select! {
            started = self.start() => started.map(Some),
            () = &mut stop => Ok(None),
        };
        let running = match started {
            Ok(Some(running)) => sources.get_or_init(|| running),
            ended => {
                join_all(self.forwarders.iter().map(Forwarder::close)).await;
                serving.close().await;
                return ended.map(drop);
            }
        };
        tracing::info!(sources = running.len(), "the relay has started");
        let watching = running.iter().map(|source| source.forwarder.watch().instrument(span(&source.name)));
        tokio::select! {
            () = &mut stop => {}
            _ = join_all(watching) => {}
        }
        tracing::info!("the relay is stopping");
        join_all(running.iter().map(|source| source.outbox.shutdown().instrument(span(&source.name)))).await;
        join_all(running.iter().map(|source| source.forwarder.close().instrument(span(&source.name)))).await;
        join_all(running.iter().map(|source| source.store.close().instrument(span(&source.name)))).await;
        // To the last, so that a probe sees the relay stop.
        serving.close().await;
        Ok(())
    }

    async fn start(&self) -> Result<Vec<Running>, RelayError> {
        let sources = || self.file.sources.iter().zip(&self.forwarders);
        let begun = sources().map(|(source, forwarder)| forwarder.begin(PATIENCE).instrument(span(&source.name)));
        let begun = join_all(begun).await;
        if let Some(error) = begun.into_iter().filter_map(Result::err).flatten().next() {
            return Err(error.into());
        }
        let mut running = Vec::new();
        for (source, forwarder) in sources() {
            match self.start_source(source, forwarder).instrument(span(&source.name)).await {
                Ok(started) => running.push(started),
                Err(error) => {
                    join_all(running.iter().map(|source: &Running| source.outbox.shutdown())).await;
                    join_all(running.iter().map(|source| source.store.close())).await;
                    return Err(RelayError::Source { source_name: source.name.clone(), error: Box::new(error) });
                }
            }
        }
        Ok(running)
    }

    async fn start_source(&self, source: &Source, forwarder: &Forwarder) -> Result<Running, pillarbox_config::Error> {
        let store = source.open().await?;
        let handler = on_any_batch(self.file.server.batch, forwarder.clone());
        let setup = source.settings.clone().outbox().store(Arc::clone(&store)).gate(forwarder.gate()).handler(handler);
        match setup.span(span(&source.name)).start().await {
            Ok(outbox) => {
                let info = store.info();
                tracing::info!(address = info.address, table = info.table, "delivers from a database");
                Ok(Running { name: source.name.clone(), store, outbox, forwarder: forwarder.clone() })
            }
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }
}

/// What every line of the log stands in that belongs to a source, at whatever level.
fn span(source: &str) -> tracing::Span {
    tracing::error_span!(parent: None, "deliver", source)
}

/// What delivers the events of each source, in their order.
fn forwarders(file: &RelayFile) -> Result<Vec<Forwarder>, RelayError> {
    let forwarder = |source: &Source| {
        let routes = file.routes_of(&source.name).metrics_prefix(&*source.settings.metrics.prefix);
        routes.build().map_err(|error| RelayError::Route { source_name: source.name.clone(), error })
    };
    file.sources.iter().map(forwarder).collect()
}

impl Running {
    fn report(&self) -> SourceReport {
        let info = self.store.info();
        SourceReport {
            name: self.name.clone(),
            address: info.address.clone(),
            table: info.table.clone(),
            health: self.outbox.health(),
            routes: self.forwarder.status(),
        }
    }
}
