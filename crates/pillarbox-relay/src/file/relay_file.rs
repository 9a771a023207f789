//! The content of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pillarbox_console::Accounts;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::publisher::Publisher;
use pillarbox_routes::{CheckError, Route, Routes};

use super::error::Places;
use super::file_setting::FileSetting;
use super::fingerprint::read_text;
use super::read::Reader;
use super::source::{Source, variables};
use super::{FileError, PublisherSection, RouteSection, ServerSettings};

/// A configuration file, read and checked as far as it can be without asking anybody.
#[derive(Debug)]
pub struct RelayFile {
    pub(crate) path: PathBuf,
    /// See [`digest`](super::fingerprint::digest).
    pub(crate) digest: String,
    pub(crate) read_at: Timestamp,
    pub(crate) server: ServerSettings,
    /// The accounts of the console as its files had them when the file was read, if it has any.
    pub(crate) accounts: Option<Accounts>,
    /// The values of section `[relay]`.
    pub(super) given: Vec<FileSetting>,
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) publishers: Vec<PublisherSection>,
    pub(crate) routes: Vec<RouteSection>,
}

impl RelayFile {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, each with its line.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path)?;
        Reader::new(Places { path, text: &text }).read()
    }

    /// The name of the publisher that a complaint is about.
    pub(crate) fn publisher_of(&self, error: &CheckError) -> String {
        let blamed = |route: &&RouteSection| error.routes.split(", ").any(|name| name.trim_matches('`') == route.name);
        self.routes.iter().find(blamed).and_then(|route| route.publisher.clone()).unwrap_or_default()
    }

    /// Takes over the publishers of another file whose sections say the same, with their connections.
    pub(crate) fn adopt(&mut self, other: &Self) {
        for section in &mut self.publishers {
            if let Some(same) = other.publishers.iter().find(|other| section.is_same(other)) {
                section.publisher = Arc::clone(&same.publisher);
            }
        }
    }

    /// True if both have a route of this name for a source, which says the same and has the same publisher.
    pub(crate) fn has_same_route(&self, other: &Self, source: &str, route: &str) -> bool {
        let (Some(own), Some(others)) = (self.route(source, route), other.route(source, route)) else { return false };
        own == others
            && match (self.publisher(own), other.publisher(others)) {
                (Some(own), Some(others)) => Arc::ptr_eq(own, others),
                (own, others) => own.is_none() && others.is_none(),
            }
    }

    /// The route of this name, if it is for a source.
    fn route(&self, source: &str, route: &str) -> Option<&RouteSection> {
        self.routes.iter().find(|section| section.name == route && section.is_for(source))
    }

    /// The publisher of a route, unless it drops what it takes.
    fn publisher(&self, route: &RouteSection) -> Option<&Arc<dyn Publisher>> {
        let name = route.publisher.as_ref()?;
        self.publishers.iter().find(|section| section.name == *name).map(|section| &section.publisher)
    }

    /// The settings of section `[relay]`, such as the address at which health, status and metrics are served.
    #[must_use]
    pub fn server(&self) -> &ServerSettings {
        &self.server
    }

    /// The variables among these that begin with `PILLARBOX_` and are of no source of the file: they change nothing. Settings of a source are in variables such as `PILLARBOX_SHOP_CLAIM__BATCH`.
    pub fn unclaimed_variables(&self, names: impl IntoIterator<Item = String>) -> Vec<String> {
        let prefixes: Vec<String> = self.sources.iter().map(|source| variables(&source.name)).collect();
        let is_claimed = |name: &String| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let is_unclaimed = |name: &String| !is_claimed(name) && !pillarbox_config::is_variable_of_others(name);
        let mut unclaimed: Vec<String> = names.into_iter().filter(is_unclaimed).collect();
        unclaimed.sort_unstable();
        unclaimed
    }

    /// The routes that a source's events may take, in their order.
    pub(crate) fn routes_of(&self, source: &str) -> Routes {
        let reachable = self.reach(source).into_iter().filter(|reach| reach.hidden_by.is_empty());
        reachable.fold(Routes::new().unrouted(self.server.unrouted), |routes, reach| routes.route(reach.route))
    }

    /// All routes that are for a source, in their order.
    pub(super) fn reach(&self, source: &str) -> Vec<Reach> {
        let mut all: Vec<Reach> = Vec::new();
        let mut earlier: Vec<Route> = Vec::new();
        for (number, section) in self.routes.iter().enumerate().filter(|(_, route)| route.is_for(source)) {
            let route = section.route(self.publisher(section).cloned());
            let number_of = |place: usize| all.get(place).map(|reach| reach.number);
            let hidden_by = route.hidden_by(&earlier).into_iter().filter_map(number_of).collect();
            earlier.push(route.clone());
            all.push(Reach { number, route, hidden_by });
        }
        all
    }
}

/// A route, as far as it is for one source.
pub(super) struct Reach {
    /// Among all routes of the file, from 0.
    pub(super) number: usize,
    pub(super) route: Route,
    /// The routes before it that leave no event for it.
    pub(super) hidden_by: Vec<usize>,
}
