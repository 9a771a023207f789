use std::future::Future;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::join_all;
use futures_util::stream::pending;
use pillarbox_console::{Access, Console};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{NodesByLease, Store, operation, refusal};
use pillarbox_engine::run::{Drained, StartError};
use pillarbox_routes::{CheckError, Forwarder};
use tokio::time::Instant;

use crate::file::Source;
use crate::run::Sources;
use crate::serve::{ConsoleServer, Endpoint, ServeError};
use crate::{ConsoleError, FileError, Preview, RelayFile};

/// The deadline in the place of one that no clock can tell.
const LONGEST_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Delivers from databases to brokers.
#[derive(Debug)]
pub struct Relay {
    pub(crate) file: RelayFile,
    pub(crate) forwarders: Vec<Forwarder>,
}

/// The result of a check.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checked {
    /// All that is wrong.
    pub problems: Vec<RelayError>,
    /// A sentence for each target that was not checked, since it depends on the event.
    pub unchecked: Vec<String>,
}

/// The rows that a drained source has left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceDrained {
    /// The name of the source.
    pub source: String,
    /// The rows; `None` if it was told to stop before it had started.
    pub left: Option<Drained>,
}

impl SourceDrained {
    /// True if nothing was due any more.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_some_and(|left| left.is_complete())
    }
}

/// The error for which a relay cannot start, or that its check has found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The configuration file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Routes that cannot be.
    #[error("source `{source_name}`: {error}")]
    Route {
        /// The name of the source.
        source_name: String,
        /// The error of its routes, with the remedy.
        error: pillarbox_routes::RouteError,
    },
    /// A source whose database or tables are not as they have to be.
    #[error("source `{source_name}`: {}", refusal::of_table(&error.to_string(), table))]
    Source {
        /// The name of the source.
        source_name: String,
        /// Its event table, which a remedy names.
        table: String,
        /// The problem.
        error: Box<pillarbox_config::Error>,
    },
    /// A broker that refuses what its routes would send.
    #[error("[publisher.{publisher}]: {error}")]
    Destination {
        /// Its name in the file.
        publisher: String,
        /// The error of its check.
        error: Box<CheckError>,
    },
    /// A source that was to be drained and could not start before the deadline.
    #[error("source `{source_name}` has not started before the deadline: {problem}")]
    NotInTime {
        /// The name of the source.
        source_name: String,
        /// The problem that it met last.
        problem: String,
    },
    /// The endpoint for health, status and metrics.
    #[error("`relay.listen`: {0}")]
    Serve(ServeError),
    /// The address of the console.
    #[error("`relay.console.listen`: {0}")]
    ServeConsole(ServeError),
    /// The console as the file has it.
    #[error("[relay.console]: {0}")]
    Console(#[from] ConsoleError),
    /// A database of a new file that cannot be delivered from, while the source delivers from another one.
    #[error(
        "{error}; it goes on with the database that it has: correct the file, or restart the relay to leave that one all the same"
    )]
    NewDatabase {
        /// The problem of the source.
        error: Box<RelayError>,
    },
    /// A setting that a reload cannot change.
    #[error("`{setting}` cannot change while the relay runs; restart it, or take the change back")]
    NotByReload {
        /// The name of the setting.
        setting: &'static str,
    },
}

impl RelayError {
    /// A problem of a source, with its name.
    pub(crate) fn of_source(source: &Source, error: impl Into<pillarbox_config::Error>) -> Self {
        Self::Source { source_name: source.name.clone(), table: source.table(), error: Box::new(error.into()) }
    }

    /// A broker's complaint, with the name of its section.
    pub(crate) fn of_check(file: &RelayFile, error: CheckError) -> Self {
        Self::Destination { publisher: file.publisher_of(&error), error: Box::new(error) }
    }

    /// True if the file has to be changed, so that another try is in vain.
    #[must_use]
    pub fn is_in_the_file(&self) -> bool {
        use pillarbox_config::Error;
        match self {
            Self::File(_) | Self::Route { .. } | Self::NotByReload { .. } | Self::Console(_) => true,
            Self::Source { error, .. } => match &**error {
                Error::Start(StartError::Config(_)) => true,
                Error::Start(StartError::Store(error)) => error.kind() == StoreErrorKind::Config,
                Error::Start(_) => false,
                _ => true,
            },
            Self::NewDatabase { error } => error.is_in_the_file(),
            Self::Destination { .. } | Self::NotInTime { .. } | Self::Serve(_) | Self::ServeConsole(_) => false,
        }
    }
}

impl Relay {
    /// Makes what a file names. Nobody is asked yet.
    ///
    /// # Errors
    /// Routes that cannot be.
    pub fn new(file: RelayFile) -> Result<Self, RelayError> {
        let forwarders = file.sources.iter().map(|source| forwarder(&file, source)).collect::<Result<_, _>>()?;
        Ok(Self { file, forwarders })
    }

    /// Asks every database whether its tables are there and its nodes run in a mode beside which the source's may, and every broker whether it takes what is to be sent, as far as it can
    /// tell. Nothing is sent and nothing is changed.
    pub async fn check(&self) -> Checked {
        let mut problems: Vec<RelayError> = Vec::new();
        for source in &self.file.sources {
            match source.open().await {
                Err(error) => problems.push(RelayError::of_source(source, error)),
                Ok(store) => {
                    let checked = may_join(source, &*store).await.map_err(StartError::Store);
                    problems.extend(checked.err().map(|error| RelayError::of_source(source, error)));
                    store.close().await;
                }
            }
        }
        let (mut seen, mut unchecked): (Vec<CheckError>, Vec<String>) = (Vec::new(), Vec::new());
        for checked in join_all(self.forwarders.iter().map(Forwarder::check)).await {
            // Sources share their publishers.
            match checked {
                Ok(others) => add_new(&mut unchecked, others),
                Err(errors) => add_new(&mut seen, errors),
            }
        }
        problems.extend(seen.into_iter().map(|error| RelayError::of_check(&self.file, error)));
        join_all(self.forwarders.iter().map(Forwarder::close)).await;
        Checked { problems, unchecked }
    }

    /// Counts pending events by their destination. Nothing is delivered, and no node joins.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn preview(&self, limit: usize) -> Result<Preview, RelayError> {
        let mut preview = Preview::default();
        for (source, forwarder) in self.file.sources.iter().zip(&self.forwarders) {
            let store = source.open().await.map_err(|error| RelayError::of_source(source, error))?;
            let added = preview.add(&source.name, &*store, forwarder, limit).await;
            store.close().await;
            added.map_err(|error| RelayError::of_source(source, StartError::Store(error)))?;
        }
        Ok(preview)
    }

    /// Delivers until `stop` is ready, then ends in order: what is on its way is waited for, as long as each source's
    /// `shutdown.drain_timeout` says.
    ///
    /// A broker that does not answer, or refuses what its routes would send, pauses those routes; a database that cannot be
    /// delivered from is tried again. Neither holds up anything else, unless `relay.on_unavailable` is `exit`.
    ///
    /// # Errors
    /// The reason why it cannot start; nothing is left running then.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), RelayError> {
        self.run_reloading(stop, pending()).await
    }

    /// As [`run`](Self::run), and puts each file of `files` in the place of the one before, as far as it differs: sources and
    /// routes that say the same go on without interruption, and publishers keep their connections. The console takes over what its files
    /// of passwords hold by then. A file that cannot be used is
    /// refused with a line in the log, and the relay goes on with the one it has.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_reloading(
        self,
        stop: impl Future<Output = ()>,
        files: impl Stream<Item = Result<RelayFile, FileError>>,
    ) -> Result<(), RelayError> {
        let endpoint = Endpoint::open(self.file.server.listen).await.map_err(RelayError::Serve)?;
        let (access, console) = console(&self.file).await?.unzip();
        // A metric counts nothing whose handle was made before there was somebody to count, as those of `new` were: they are made
        // again.
        let sources = Sources::start(self.file)?.with_console(access);
        // Probes are answered from the first moment: a relay that waits for a broker is alive, and not ready.
        let serving = endpoint.serve(sources.reports());
        let console = console.map(|(server, console)| server.serve(console.sources(sources.shown_by_console())));
        let ended = sources.run(stop, files).await;
        if let Some(console) = console {
            console.close().await;
        }
        // To the last, so that a probe sees the relay stop.
        serving.close().await;
        ended
    }
}

impl Relay {
    /// Delivers from every source until nothing is due any more or the deadline comes, as
    /// [`Outbox::drain`](pillarbox_engine::run::Outbox::drain) does, then ends in order. `stop` ends it early.
    ///
    /// The deadline counts from the call: what a source needs to start goes off it. A paused route keeps its events due, and is tried
    /// again until the deadline.
    ///
    /// # Errors
    /// It cannot start, a source has not started by the deadline, or the rest of one cannot be counted. The other sources are drained all the
    /// same.
    pub async fn drain(
        self,
        deadline: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<SourceDrained>, RelayError> {
        let now = Instant::now();
        let deadline = now.checked_add(deadline).unwrap_or_else(|| now + LONGEST_DEADLINE);
        let endpoint = Endpoint::open(self.file.server.listen).await.map_err(RelayError::Serve)?;
        let sources = Sources::start_draining(self.file, deadline)?;
        let serving = endpoint.serve(sources.reports());
        let ended = sources.drain(stop).await;
        serving.close().await;
        ended
    }
}

/// Checks the tables of a source, and whether it could join the nodes that are alive.
pub(crate) async fn may_join(source: &Source, store: &dyn Store) -> Result<(), StoreError> {
    store.check().await?;
    let Some(mode) = source.settings.mode.of_nodes() else { return Ok(()) };
    let alive = store.nodes().await?.into_iter().filter(|node| node.lease_left.is_some()).collect();
    let by_lease = NodesByLease { alive, ended: Vec::new(), spared_for: None };
    let refused = |problem| StoreError::new(StoreErrorKind::IncompatibleMode, operation::JOIN, problem);
    by_lease.nodes_to_evict_for(mode).map(|_| ()).map_err(refused)
}

/// Opens the console that a file asks for, with its accounts.
async fn console(file: &RelayFile) -> Result<Option<(Access, (ConsoleServer, Console))>, RelayError> {
    let Some(settings) = &file.server.console else { return Ok(None) };
    let access = settings.access_by(file.accounts.clone())?;
    let console = settings.console(Console::new(access.clone()));
    let server = ConsoleServer::open(settings.listen).await.map_err(RelayError::ServeConsole)?;
    tracing::info!(address = %server.address(), "the console is served");
    Ok(Some((access, (server, console))))
}

/// Adds what is not there yet.
pub(crate) fn add_new<T: PartialEq>(all: &mut Vec<T>, others: Vec<T>) {
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
}

/// Makes the forwarder that delivers the events of a source.
pub(crate) fn forwarder(file: &RelayFile, source: &Source) -> Result<Forwarder, RelayError> {
    let routes = file.routes_of(&source.name).metrics_prefix(&*source.settings.metrics.prefix);
    routes.build().map_err(|error| RelayError::Route { source_name: source.name.clone(), error })
}
