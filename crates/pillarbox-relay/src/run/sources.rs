use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{Stream, StreamExt as _};
use pillarbox_console::Access;
use pillarbox_core::clock::{Clock as _, SystemClock};
use pillarbox_core::lock::Mutex;
use pillarbox_core::publisher::Publisher;
use pillarbox_doctor::Doctor;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;

use super::source::{Beginning, SourceTask};
use crate::doctor::configuration::beside;
use crate::file::{FileError, RelayFile, Source};
use crate::relay::{RelayError, SourceDrained, forwarder};
use crate::report::{ConfigurationReport, RefusedConfiguration, Report};
use crate::serve::Reports;

/// The interval at which the relay looks for retired publishers whose last call has ended.
const RETIRED_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The gauge of a refused file.
const REFUSED: &str = "pillarbox_configuration_refused";

/// The sources of a file, each with a task of its own.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(super) file: Arc<RelayFile>,
    pub(super) all: Vec<Arc<SourceTask>>,
    shown: Arc<Shown>,
    pub(super) tasks: JoinSet<Result<(), RelayError>>,
    /// Publishers that no route names any more, until the last call to them has ended.
    pub(super) retired: Vec<Arc<dyn Publisher>>,
    /// The access to the console, if one is served.
    console: Option<Access>,
}

/// The sources as the endpoint sees them.
#[derive(Debug, Default)]
struct Shown {
    started: AtomicBool,
    configuration: Mutex<Option<ConfigurationReport>>,
    file: Mutex<Option<Arc<RelayFile>>>,
    all: Mutex<Vec<Arc<SourceTask>>>,
}

/// Sets the gauge of a file that was refused after the one in force was read.
fn tell_refused(is_refused: bool) {
    metrics::describe_gauge!(REFUSED, metrics::Unit::Count, "1 if a file was refused since the one in force was read");
    metrics::gauge!(REFUSED).set(f64::from(u8::from(is_refused)));
}

impl Sources {
    /// Begins to deliver from each source of a file.
    pub(crate) fn start(file: RelayFile) -> Result<Self, RelayError> {
        let mut sources = Self::of(file)?;
        let beginning = sources.beginning(true);
        for source_task in &sources.all {
            sources.tasks.spawn(work(source_task, beginning.clone()));
        }
        Ok(sources)
    }

    /// Begins to drain each source of a file, until the deadline.
    pub(crate) fn start_draining(file: RelayFile, deadline: Instant) -> Result<Self, RelayError> {
        let mut sources = Self::of(file)?;
        let beginning = sources.beginning(true);
        for source_task in &sources.all {
            let drain = Arc::clone(source_task).drain(beginning.clone(), deadline);
            sources.tasks.spawn(drain.instrument(source_task.span()));
        }
        Ok(sources)
    }

    /// The sources of a file, of which none has begun.
    fn of(file: RelayFile) -> Result<Self, RelayError> {
        let mut sources = Self {
            all: Vec::new(),
            shown: Arc::default(),
            tasks: JoinSet::new(),
            retired: Vec::new(),
            console: None,
            file: Arc::new(file),
        };
        let first: Vec<Arc<Source>> = sources.file.sources.iter().map(Arc::clone).collect();
        let all = first.into_iter().map(|source| {
            let forwarder = forwarder(&sources.file, &source)?;
            Ok(Arc::new(SourceTask::new(source, forwarder)))
        });
        sources.all = all.collect::<Result<_, RelayError>>()?;
        sources.show();
        Ok(sources)
    }

    /// Serves a console with this access, until a file with other accounts is read.
    pub(crate) fn with_console(self, console: Option<Access>) -> Self {
        Self { console, ..self }
    }

    /// Gives the console the accounts that the files of passwords name now. The sessions of all other accounts end.
    pub(super) fn replace_accounts(&self, file: &RelayFile) {
        if let (Some(console), Some(accounts)) = (&self.console, &file.accounts) {
            console.replace_accounts(accounts.clone());
        }
    }

    pub(super) fn beginning(&self, may_end: bool) -> Beginning {
        Beginning { file: Arc::clone(&self.file), batch: self.file.server.batch, may_end, after: None }
    }

    /// Lets the endpoint see the sources as they are now.
    pub(super) fn show(&self) {
        tell_refused(false);
        self.shown.all.lock().clone_from(&self.all);
        *self.shown.file.lock() = Some(Arc::clone(&self.file));
        let (read_at, digest) = (self.file.read_at.to_string(), self.file.digest.clone());
        *self.shown.configuration.lock() = Some(ConfigurationReport { read_at, digest, refused: None });
    }

    /// Lets the endpoint and the console see that another file was refused.
    pub(super) fn show_refused(&self, problem: String) {
        tell_refused(true);
        if let Some(configuration) = &mut *self.shown.configuration.lock() {
            configuration.refused = Some(RefusedConfiguration { at: SystemClock.now().to_string(), problem });
        }
    }

    /// The reports that the endpoint shows.
    pub(crate) fn reports(&self) -> Reports {
        let shown = Arc::clone(&self.shown);
        Arc::new(move || {
            let sources = || shown.all.lock().iter().map(|source| source.report()).collect();
            Report {
                configuration: shown.configuration.lock().clone(),
                sources: shown.started.load(Ordering::Acquire).then(sources),
            }
        })
    }

    /// The sources that the console shows.
    pub(crate) fn shown_by_console(&self) -> impl Fn() -> Vec<pillarbox_console::Source> + Send + Sync + 'static {
        let (shown, path) = (Arc::clone(&self.shown), self.file.path.clone());
        let name = format!("file {}", path.display());
        move || {
            let Some(configuration) = shown.configuration.lock().clone() else { return Vec::new() };
            let doctor = || {
                let (path, configuration) = (path.clone(), configuration.clone());
                Doctor::new().configuration(name.clone(), move || Box::pin(beside(path.clone(), configuration.clone())))
            };
            let Some(file) = shown.file.lock().clone() else { return Vec::new() };
            let all = shown.all.lock();
            all.iter().map(|source| source.shown(doctor(), &file).configuration(configuration.clone().into())).collect()
        }
    }

    /// Delivers until `stop` is ready, or a source cannot go on, and stops in order. Takes files that are to replace the first.
    pub(crate) async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        files: impl Stream<Item = Result<RelayFile, FileError>>,
    ) -> Result<(), RelayError> {
        let (mut stop, mut files) = (pin!(stop), pin!(files.fuse()));
        let begun: Vec<_> = self.all.iter().map(|source| source.begun.clone()).collect();
        let mut begun = pin!(async move { join_all(begun.iter().map(|begun| begun.cancelled())).await });
        let mut started = false;
        let outcome = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                _ = &mut begun, if !started => {
                    started = true;
                    self.shown.started.store(true, Ordering::Release);
                    tracing::info!(sources = self.all.len(), "the relay has started");
                }
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Err(error) = outcome_of(ended) {
                        break Err(error);
                    }
                }
                Some(file) = files.next() => tokio::select! {
                    () = &mut stop => break Ok(()),
                    file = self.examine(file) => self.reload(file),
                },
                () = sleep(RETIRED_CHECK_INTERVAL), if !self.retired.is_empty() => self.close_retired(),
            }
        };
        if started {
            tracing::info!("the relay is stopping");
        }
        let stopped = self.stop().await;
        outcome.and(stopped)
    }

    /// Waits until every source is drained, or `stop` is ready, and stops in order. Returns the rows that each has left.
    ///
    /// # Errors
    /// The first of a source; the others are drained all the same.
    pub(crate) async fn drain(mut self, stop: impl Future<Output = ()>) -> Result<Vec<SourceDrained>, RelayError> {
        self.shown.started.store(true, Ordering::Release);
        tracing::info!(sources = self.all.len(), "the relay delivers what is due, and ends");
        let mut stop = pin!(stop);
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                () = &mut stop => break,
                ended = self.tasks.join_next() => match ended {
                    Some(ended) => outcome = outcome.and(outcome_of(ended)),
                    None => break,
                },
            }
        }
        let stopped = self.stop().await;
        outcome.and(stopped)?;
        let left = self.all.iter().map(|source| source.left());
        Ok(left.map(|(source, left)| SourceDrained { source, left }).collect())
    }

    async fn stop(&mut self) -> Result<(), RelayError> {
        self.all.iter().for_each(|source| source.stop.cancel());
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            outcome = outcome.and(outcome_of(ended));
        }
        let named = self.file.publishers.iter().map(|section| &section.publisher);
        join_all(named.chain(&self.retired).map(|publisher| publisher.close())).await;
        outcome
    }

    /// Closes publishers whose last call has ended.
    fn close_retired(&mut self) {
        let (used, unused) = self.retired.drain(..).partition(|publisher| Arc::strong_count(publisher) > 1);
        self.retired = used;
        let unused: Vec<Arc<dyn Publisher>> = unused;
        for publisher in unused {
            self.tasks.spawn(async move {
                publisher.close().await;
                Ok(())
            });
        }
    }
}

/// The task of a source.
pub(super) fn work(
    source_task: &Arc<SourceTask>,
    beginning: Beginning,
) -> impl Future<Output = Result<(), RelayError>> + Send + 'static {
    let span = source_task.span();
    Arc::clone(source_task).run(beginning).instrument(span)
}

/// A task that panicked goes on panicking here.
fn outcome_of(ended: Result<Result<(), RelayError>, JoinError>) -> Result<(), RelayError> {
    match ended {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_cancelled) => Ok(()),
        },
    }
}
