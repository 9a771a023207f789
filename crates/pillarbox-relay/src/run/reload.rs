use std::sync::Arc;

use pillarbox_core::publisher::Publisher;

use super::source::{Beginning, Deliverer};
use super::sources::{Sources, work};
use crate::file::{FileError, RelayFile, Source};
use crate::relay::{RelayError, forwarder};

/// The changes that a new file has made, as numbers of sources.
#[derive(Debug, Default)]
struct Changes {
    kept: usize,
    restarted: usize,
    added: usize,
    removed: usize,
}

impl Sources {
    /// Puts another file in the place of the first, if it can be used.
    pub(super) fn reload(&mut self, file: Result<RelayFile, FileError>) {
        match file.map_err(RelayError::from).and_then(|file| self.replace(file)) {
            Ok(Changes { kept, restarted, added, removed }) => {
                tracing::info!(
                    kept,
                    restarted,
                    added,
                    removed,
                    "the configuration was reloaded; numbers are of sources"
                );
            }
            Err(error) => {
                let problem = error.to_string();
                tracing::error!(problem, "the configuration file is refused; the relay goes on with the one it has");
                self.show_refused(problem);
            }
        }
    }

    /// A source whose section says what it said before goes on, with the routes that the new file has for it: those that have
    /// not changed as they are, in whatever state. One whose section changed stops in order, and then starts anew.
    fn replace(&mut self, mut file: RelayFile) -> Result<Changes, RelayError> {
        if file.server.listen != self.file.server.listen {
            return Err(RelayError::NotByReload { setting: "relay.listen" });
        }
        if file.server.console != self.file.server.console {
            return Err(RelayError::NotByReload { setting: "relay.console" });
        }
        for source in &file.sources {
            source.settings.check_database().map_err(|error| RelayError::of_source(source, error))?;
        }
        file.adopt(&self.file);
        let same_batch = file.server.batch == self.file.server.batch;
        let of = |all: &[Arc<Deliverer>], name: &str| all.iter().find(|other| other.source.name == name).cloned();
        let mut changes = Changes::default();
        let (mut all, mut begins) = (Vec::new(), Vec::new());
        for source in &file.sources {
            let before = of(&self.all, &source.name);
            match before {
                Some(before) if same_batch && source.is_same(&before.source) => {
                    self.reroute(&file, source, &before)?;
                    changes.kept += 1;
                    all.push(before);
                }
                before => {
                    let deliverer = Arc::new(Deliverer::new(Arc::clone(source), forwarder(&file, source)?));
                    *(if before.is_some() { &mut changes.restarted } else { &mut changes.added }) += 1;
                    begins.push((Arc::clone(&deliverer), before.map(|before| before.ended.clone())));
                    all.push(deliverer);
                }
            }
        }
        changes.removed = self.all.iter().filter(|old| of(&all, &old.source.name).is_none()).count();
        for old in self.all.iter().filter(|old| !all.iter().any(|kept| Arc::ptr_eq(kept, old))) {
            old.stop.cancel();
        }
        let is_named = |publisher: &Arc<dyn Publisher>| {
            file.publishers.iter().any(|section| Arc::ptr_eq(&section.publisher, publisher))
        };
        let unnamed = self.file.publishers.iter().map(|section| &section.publisher).filter(|old| !is_named(old));
        self.retired.extend(unnamed.cloned());
        (self.file, self.all) = (Arc::new(file), all);
        for (deliverer, after) in begins {
            let beginning = Beginning { after, ..self.beginning(false) };
            self.tasks.spawn(work(&deliverer, beginning));
        }
        self.show();
        Ok(changes)
    }

    /// Gives a source that goes on the routes of the new file.
    fn reroute(&self, file: &RelayFile, source: &Arc<Source>, before: &Deliverer) -> Result<(), RelayError> {
        let routes = file.routes_of(&source.name).metrics_prefix(&*source.settings.metrics.prefix);
        let keeps = |route: &str| file.has_same_route(&self.file, &source.name, route);
        let replaced = before.forwarder.replace(routes, keeps);
        replaced.map_err(|error| RelayError::Route { source_name: source.name.clone(), error })
    }
}
