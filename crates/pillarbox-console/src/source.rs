use std::fmt;
use std::sync::Arc;

use pillarbox_core::store::Store;
use pillarbox_engine::maintain::{DeadEvents, Pauses, PendingEvents};
use pillarbox_engine::run::Outbox;
use pillarbox_routes::Forwarder;

use crate::examine::Examine;

/// An outbox that the console shows. Cheap to clone.
#[derive(Clone)]
pub struct Source {
    name: Arc<str>,
    backend: Backend,
    pub(crate) settings: Arc<[Setting]>,
    pub(crate) configuration: Option<ConfigurationFile>,
    pub(crate) routes: Option<Forwarder>,
    pub(crate) examiner: Option<Arc<dyn Examine>>,
}

#[derive(Clone)]
enum Backend {
    Store(Arc<dyn Store>),
    Outbox(Outbox),
    /// It cannot be shown now, for this reason.
    Away(Arc<str>),
}

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key, such as `claim.max_interval`.
    pub key: String,
    /// Its value as text, without any secret.
    pub value: String,
    /// The place where it was given; `None` for a default.
    pub origin: Option<String>,
}

/// A configuration file that a process works by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationFile {
    /// The time at which it was read.
    pub read_at: String,
    /// The time at which another was refused after it, and the problem.
    pub refused: Option<(String, String)>,
}

impl Source {
    /// The outbox of a store, which other processes deliver from. The name is made of letters, digits, `-`, `_` and `.`; others become
    /// `-`.
    #[must_use]
    pub fn of_store(name: &str, store: Arc<dyn Store>) -> Self {
        Self::new(name, Backend::Store(store))
    }

    /// An outbox that runs in this process. Its problems are shown too, and events that are replayed here are delivered at once.
    #[must_use]
    pub fn of_outbox(name: &str, outbox: Outbox) -> Self {
        Self::new(name, Backend::Outbox(outbox))
    }

    /// An outbox whose database cannot be reached now, and why: without credentials, since it is shown.
    #[must_use]
    pub fn away(name: &str, problem: &str) -> Self {
        Self::new(name, Backend::Away(problem.into()))
    }

    fn new(name: &str, backend: Backend) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let mut name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        if name.trim_matches('.').is_empty() {
            name = "outbox".to_owned();
        }
        Self { name: name.into(), backend, settings: Arc::default(), configuration: None, routes: None, examiner: None }
    }

    /// Shows these settings.
    #[must_use]
    pub fn settings(self, settings: impl IntoIterator<Item = Setting>) -> Self {
        Self { settings: settings.into_iter().collect(), ..self }
    }

    /// Shows that the settings and routes are those of a file.
    #[must_use]
    pub fn configuration(self, configuration: ConfigurationFile) -> Self {
        Self { configuration: Some(configuration), ..self }
    }

    /// Shows the routes of this forwarder.
    #[must_use]
    pub fn routes(self, forwarder: Forwarder) -> Self {
        Self { routes: Some(forwarder), ..self }
    }

    /// Shows what this finds to be wrong.
    #[must_use]
    pub fn examined_by(self, examiner: impl Examine + 'static) -> Self {
        Self { examiner: Some(Arc::new(examiner)), ..self }
    }

    /// The name, as the console writes it in addresses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store; the reason if there is none now.
    pub(crate) fn store(&self) -> Result<&dyn Store, &str> {
        match &self.backend {
            Backend::Store(store) => Ok(&**store),
            Backend::Outbox(outbox) => Ok(outbox.store()),
            Backend::Away(problem) => Err(problem),
        }
    }

    pub(crate) fn outbox(&self) -> Option<&Outbox> {
        match &self.backend {
            Backend::Outbox(outbox) => Some(outbox),
            Backend::Store(_) | Backend::Away(_) => None,
        }
    }

    pub(crate) fn dead(&self) -> Result<DeadEvents<'_, dyn Store>, &str> {
        match self.outbox() {
            Some(outbox) => Ok(outbox.dead_events()),
            None => self.store().map(DeadEvents::of),
        }
    }

    pub(crate) fn pauses(&self) -> Result<Pauses<'_, dyn Store>, &str> {
        match self.outbox() {
            Some(outbox) => Ok(outbox.pauses()),
            None => self.store().map(Pauses::of),
        }
    }

    pub(crate) fn pending(&self) -> Result<PendingEvents<'_, dyn Store>, &str> {
        match self.outbox() {
            Some(outbox) => Ok(outbox.pending_events()),
            None => self.store().map(PendingEvents::of),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}
