use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::publisher::Publisher;
use pillarbox_core::store::operation;
use pillarbox_engine::run::StartError;
use pillarbox_routes::{OPERATOR_PAUSE_ENDED, RouteState, RouteStatus};
use tokio::time::timeout;

use super::source::{Beginning, SourceTask};
use super::sources::{Sources, work};
use crate::file::{FileError, RelayFile, Source};
use crate::relay::{RelayError, forwarder, may_join};

/// The time in which the databases of a new file have to answer that replace others: more than a connection may take, whose error has the
/// address.
const DATABASE_WAIT: Duration = Duration::from_secs(15);

/// The changes that a new file has made, as numbers of sources.
#[derive(Debug, Default)]
struct Changes {
    kept: usize,
    restarted: usize,
    added: usize,
    removed: usize,
}

impl Sources {
    /// Checks that another file can be used. Where it gives a source that delivers another database, that database is asked first, so that a
    /// mistyped URL stops nothing.
    pub(super) fn examine(
        &self,
        file: Result<RelayFile, FileError>,
    ) -> impl Future<Output = Result<RelayFile, RelayError>> + use<> {
        let usable = file.map_err(RelayError::from).and_then(|file| self.may_replace(&file).map(|()| file));
        let all = self.all.clone();
        async move {
            let file = usable?;
            let moved = file.sources.iter().filter_map(|source| {
                let before = all.iter().find(|before| before.source.name == source.name && before.has_started())?;
                (!connects_alike(source, &before.source)).then(|| ask(source, &before.source))
            });
            try_join_all(moved).await?;
            Ok(file)
        }
    }

    /// Puts another file in the place of the first, if it can be used.
    pub(super) fn reload(&mut self, file: Result<RelayFile, RelayError>) {
        match file.and_then(|file| self.replace(file)) {
            Ok(Changes { kept, restarted, added, removed }) => {
                tracing::info!(
                    sources_kept = kept,
                    sources_restarted = restarted,
                    sources_added = added,
                    sources_removed = removed,
                    "the configuration was reloaded"
                );
            }
            Err(error) => {
                let problem = error.to_string();
                tracing::error!(problem, "the configuration file is refused; the relay goes on with the one it has");
                self.show_refused(problem);
            }
        }
    }

    /// Refuses what a reload cannot change, and databases that cannot be.
    fn may_replace(&self, file: &RelayFile) -> Result<(), RelayError> {
        if file.server.listen != self.file.server.listen {
            return Err(RelayError::NotByReload { setting: "relay.listen" });
        }
        if file.server.console != self.file.server.console {
            return Err(RelayError::NotByReload { setting: "relay.console" });
        }
        for source in &file.sources {
            source.settings.check_database().map_err(|error| RelayError::of_source(source, error))?;
        }
        Ok(())
    }

    /// A source whose section has not changed goes on, with the routes that the new file has for it; unchanged routes keep their state. A source
    /// whose section changed stops in order, and then starts anew. A route that an operator has paused stays paused, as far as there is a route
    /// of that name.
    fn replace(&mut self, mut file: RelayFile) -> Result<Changes, RelayError> {
        file.adopt(&self.file);
        let same_batch = file.server.batch == self.file.server.batch;
        let of = |all: &[Arc<SourceTask>], name: &str| all.iter().find(|other| other.source.name == name).cloned();
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
                    let source_task = Arc::new(SourceTask::new(Arc::clone(source), forwarder(&file, source)?));
                    *(if before.is_some() { &mut changes.restarted } else { &mut changes.added }) += 1;
                    begins.push((Arc::clone(&source_task), before));
                    all.push(source_task);
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
        self.replace_accounts(&file);
        (self.file, self.all) = (Arc::new(file), all);
        // Operators pause and resume the routes of the new ones from here on.
        self.show();
        for (source_task, before) in begins {
            before.iter().for_each(|before| stay_paused(before, &source_task));
            let beginning = Beginning { after: before, ..self.beginning(false) };
            self.tasks.spawn(work(&source_task, beginning));
        }
        Ok(changes)
    }

    /// Gives a source that goes on the routes of the new file.
    fn reroute(&self, file: &RelayFile, source: &Arc<Source>, before: &SourceTask) -> Result<(), RelayError> {
        let routes = file.routes_of(&source.name).metrics_prefix(&*source.settings.metrics.prefix);
        let keeps = |route: &str| file.has_same_route(&self.file, &source.name, route);
        let replaced = before.forwarder.replace(routes, keeps);
        replaced.map_err(|error| RelayError::Route { source_name: source.name.clone(), error })
    }
}

/// True if a source connects to the tables that it had before, in the same way.
fn connects_alike(source: &Source, before: &Source) -> bool {
    source.has_same_url(before) && source.has_same_tables(before)
}

/// Asks the new database of a source whether it can be delivered from.
async fn ask(source: &Source, before: &Source) -> Result<(), RelayError> {
    let asked = async {
        tracing::info!(
            source = source.name,
            "the database of the new file is asked, before the source leaves the one that it has"
        );
        let store = source.open().await?;
        // Tables may still have to be made; and in those that it has already the source's own node is at work.
        let joins_others = !source.settings.store.migrate && !source.has_same_tables(before);
        let checked = if joins_others { may_join(source, &*store).await } else { Ok(()) };
        store.close().await;
        checked.map_err(|error| pillarbox_config::Error::from(StartError::Store(error)))
    };
    let answered = timeout(DATABASE_WAIT, asked).await.unwrap_or_else(|_elapsed| {
        let problem = format!("the database has not answered within {} s", DATABASE_WAIT.as_secs());
        Err(StartError::Store(StoreError::new(StoreErrorKind::Unavailable, operation::CONNECT, problem)).into())
    });
    answered.map_err(|error| RelayError::NewDatabase { error: Box::new(RelayError::of_source(source, error)) })
}

/// Pauses the routes of a source that begins anew which an operator had paused before, so that a reload sends nothing that an operator has
/// stopped.
fn stay_paused(before: &SourceTask, new: &SourceTask) {
    let _source = new.span().entered();
    for RouteStatus { route, state, .. } in before.forwarder.status() {
        let RouteState::PausedByOperator { reason, .. } = state else { continue };
        if !new.forwarder.pause(&route, &reason) {
            tracing::warn!(route, reason, "{OPERATOR_PAUSE_ENDED}");
        }
    }
}

#[cfg(all(test, feature = "webhook"))]
#[allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use futures_util::stream::pending;

    use super::*;

    /// A file with routes `orders` and `others` to a broker that is not there.
    fn file(folder: &Path, workers: usize, orders: &str) -> RelayFile {
        let path = folder.join("relay.toml");
        let database = folder.join("shop.db").display().to_string();
        let text = format!(
            "[[source]]\nname = \"shop\"\nmode = \"single_node\"\ndispatch.workers = {workers}\n\
             store.url = \"sqlite://{database}\"\nstore.migrate = true\n\
             [publisher.hooks]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\nallow_private = true\n\
             [[route]]\nname = \"orders\"\ntypes = [\"order.*\"]\npublisher = \"hooks\"\nto = \"{orders}\"\n\
             [[route]]\nname = \"others\"\npublisher = \"hooks\"\nto = \"others\"\n"
        );
        std::fs::write(&path, text).expect("writes");
        RelayFile::read(&path).expect("a file")
    }

    fn are_paused(sources: &Sources) -> Vec<bool> {
        let statuses = sources.all.iter().flat_map(|source| source.forwarder.status());
        let is_anna = |state| matches!(state, RouteState::PausedByOperator { reason, .. } if reason == "by anna");
        statuses.map(|status| is_anna(status.state)).collect()
    }

    #[tokio::test]
    async fn a_route_that_an_operator_has_paused_stays_so_whatever_is_reloaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sources = Sources::start(file(folder.path(), 2, "orders")).expect("routes");
        assert!(sources.all[0].forwarder.pause("orders", "by anna"));
        let first = sources.all[0].forwarder.clone();
        for (workers, orders, what) in [
            (2, "orders", "nothing"),
            (2, "elsewhere", "the route"),
            (3, "elsewhere", "its source"),
            (4, "orders", "both"),
        ] {
            let examined = sources.examine(Ok(file(folder.path(), workers, orders))).await;
            sources.reload(examined);
            assert_eq!(are_paused(&sources), [true, false], "{what} has changed");
        }
        assert!(first.resume("orders") && are_paused(&sources) == [true, false], "the source has begun anew");
        assert!(sources.all[0].forwarder.resume("orders"));
        let ended = timeout(Duration::from_secs(30), sources.run(std::future::ready(()), pending())).await;
        ended.expect("it stops").expect("in order");
    }
}
