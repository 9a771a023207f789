use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use pillarbox_config::{DatabaseUrl, InForce, Loader, Settings};
use pillarbox_console::Accounts;
use pillarbox_core::clock::{Clock as _, SystemClock, Timestamp};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::publisher::Publisher;
use pillarbox_core::store::{Store, TableName, operation, refusal};
use pillarbox_engine::run::StartError;
use pillarbox_routes::{CheckError, Route, RouteError, Routes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Places, place_of};
use super::given::Given;
use super::on_disk::{digest, read_text};
use super::publisher::publisher;
use super::{ConsoleError, FileError, PublisherSection, RouteSection, ServerSettings};

/// A configuration file, read and checked as far as it can be without asking anybody.
#[derive(Debug)]
pub struct RelayFile {
    pub(crate) path: PathBuf,
    /// See [`digest`](super::on_disk::digest).
    pub(crate) digest: String,
    pub(crate) read_at: Timestamp,
    pub(crate) server: ServerSettings,
    /// The accounts of the console as its files had them when the file was read, if it has any.
    pub(crate) accounts: Option<Accounts>,
    /// What section `[relay]` says.
    pub(super) given: Vec<Given>,
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) publishers: Vec<PublisherSection>,
    pub(crate) routes: Vec<RouteSection>,
}

/// A database to deliver from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    /// The URL of the database as it was when the file was read, if it could be.
    url: Option<DatabaseUrl>,
    /// What the files held that this URL names; `None` for one that could not be read.
    certificates: Vec<Option<Vec<u8>>>,
}

/// The parameters of the URLs of databases that name files: certificates and keys, which are read once.
const CERTIFICATES: [&str; 6] = ["ssl-ca", "ssl-cert", "ssl-key", "sslcert", "sslkey", "sslrootcert"];

/// Reads the files that the URL of a database names.
fn certificates(url: &DatabaseUrl) -> Vec<Option<Vec<u8>>> {
    let (_, parameters) = url.as_str().split_once('?').unwrap_or_default();
    let parameters = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
    let paths = parameters.filter(|(name, _)| CERTIFICATES.contains(name)).map(|(_, path)| path);
    paths.map(|path| std::fs::read(&*percent_decode_str(path).decode_utf8().ok()?).ok()).collect()
}

/// What a URL says of the place of the tables: not who connects, nor how.
fn place(url: &str) -> &str {
    let (place, _) = url.split_once('?').unwrap_or((url, ""));
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    place.rsplit_once('@').map_or(place, |(_, place)| place)
}

impl Source {
    /// True if both say the same, what `store.url_file` and the certificates of the URL hold included. A certificate that cannot be read now, as
    /// while it is written, is that of before.
    pub(crate) fn is_same(&self, before: &Self) -> bool {
        let mut certificates = self.certificates.iter().zip(&before.certificates);
        let has_same_url = self.url == before.url && certificates.all(|(now, before)| now.is_none() || now == before);
        self.name == before.name && has_same_url && self.settings.is_same(&before.settings)
    }

    /// True if both lead to the same tables, whoever connects and however.
    pub(crate) fn has_same_tables(&self, other: &Self) -> bool {
        let place = |source: &Self| source.url.as_ref().map(|url| place(url.as_str()).to_owned());
        let (own, others) = (&self.settings.store, &other.settings.store);
        place(self) == place(other) && own.table == others.table && own.table_prefix == others.table_prefix
    }

    /// The settings, for people.
    pub(crate) fn settings_in_force(&self) -> impl Iterator<Item = pillarbox_console::Setting> {
        self.settings.in_force().into_iter().map(|InForce { key, value, origin, .. }| pillarbox_console::Setting {
            key,
            value,
            origin: origin.map(|origin| origin.to_string()),
        })
    }

    /// The name of the event table.
    pub(crate) fn table(&self) -> String {
        let store = &self.settings.store;
        let name = TableName::parse(&store.table)
            .and_then(|name| name.prefixed(store.table_prefix.as_deref().unwrap_or_default()));
        name.map_or_else(|_| store.table.clone(), |name| name.to_string())
    }

    /// Opens the database, which has to be there: SQLite would create a file of any name.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, pillarbox_config::Error> {
        // Where it may not be looked for, opening it says so.
        let is_missing = |file: &PathBuf| !self.settings.store.migrate && !file.try_exists().unwrap_or(true);
        if let Some(file) = self.settings.sqlite_file()?.filter(is_missing) {
            // It may still be made: the file need not be wrong.
            let problem = format!(
                "`{}` does not exist; check `store.url`, which is relative to where the relay was started, or create the \
                 outbox with `{}`",
                file.display(),
                refusal::migrate(Some(&file.display().to_string()), &self.table())
            );
            let error = StoreError::new(StoreErrorKind::Unavailable, operation::CONNECT, problem);
            return Err(StartError::Store(error).into());
        }
        self.settings.connect().await
    }
}

/// Defaults that suit a relay better than those of a service, whose handlers answer one event at a time.
const DEFAULTS: [(&str, &str); 6] = [
    ("dispatch.workers", "32"),
    ("dispatch.cold_capacity", "8000"),
    ("claim.max_interval", "500ms"),
    ("ownership.standby_interval", "500ms"),
    // Longer than a publisher's call may take: 10 s by default.
    ("shutdown.drain_timeout", "15s"),
    // Publishers have time limits of their own, and a batch may wait for its turn.
    ("dispatch.handler_timeout", "never"),
];

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

    /// Those of these variables of the environment that look like settings and are of no source of the file: they change nothing. Settings of a
    /// source are in variables such as `PILLARBOX_SHOP_CLAIM__BATCH`.
    pub fn unclaimed_variables(&self, names: impl IntoIterator<Item = String>) -> Vec<String> {
        let prefixes: Vec<String> = self.sources.iter().map(|source| variables(&source.name)).collect();
        let is_unclaimed = |name: &String| {
            let is_setting = name.strip_prefix("PILLARBOX_").is_some_and(|rest| rest.contains("__"));
            is_setting && !prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
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
    fn reach(&self, source: &str) -> Vec<Reach> {
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
struct Reach {
    /// Among all routes of the file, from 0.
    number: usize,
    route: Route,
    /// Those before it that leave nothing for it.
    hidden_by: Vec<usize>,
}

struct Reader<'a> {
    places: Places<'a>,
    /// All that is wrong so far.
    wrong: Vec<FileError>,
    sources: Vec<Declared>,
    publishers: Vec<Declared>,
    /// True if a section has no name that can be read, so that a name which is missing may be that one's.
    has_nameless: bool,
}

/// A source or publisher that the file has, whether it can be used or not.
struct Declared {
    name: String,
    at: usize,
}

/// The places of a route and of its keys, in bytes from the beginning of the file.
struct RoutePlace {
    at: usize,
    keys: Vec<(String, usize)>,
}

impl RoutePlace {
    /// The place of a key, or of the route if it has none such.
    fn of(&self, key: &str) -> usize {
        let key = key.split('.').next().unwrap_or(key);
        self.keys.iter().find(|(name, _)| name == key).map_or(self.at, |(_, at)| *at)
    }
}

type Item<'i> = Spanned<DeValue<'i>>;

impl<'a> Reader<'a> {
    fn new(places: Places<'a>) -> Self {
        Self { places, wrong: Vec::new(), sources: Vec::new(), publishers: Vec::new(), has_nameless: false }
    }

    fn read(mut self) -> Result<RelayFile, FileError> {
        let places = self.places;
        let root = DeTable::parse(places.text)
            .map_err(|error| places.wrong(error.span().map_or(0, |span| span.start), "", error.message()))?;
        let (mut server, mut sources, mut publishers) = (ServerSettings::default(), Vec::new(), Vec::new());
        let (mut given, mut accounts) = (Vec::new(), None);
        let (mut routes, mut places_of_routes) = (Vec::new(), Vec::new());
        let mut route_sections = 0;
        for (name, item) in root.into_inner() {
            let at = name.span().start;
            match &**name.get_ref() {
                "relay" => {
                    let Some(table) = self.table("[relay]", at, item) else { continue };
                    given = Given::all(places, &table);
                    let keys = ["batch", "console"].map(|key| place_of(&table, key).unwrap_or(at));
                    if let Some(read) = places.read(at, "[relay]", table, &mut self.wrong) {
                        server = read;
                        accounts = self.check_server(&server, keys);
                    }
                }
                "source" => {
                    for item in self.list("source", at, item) {
                        sources.extend(self.source(item).map(Arc::new));
                    }
                }
                "publisher" => {
                    for (name, item) in self.table("[publisher.NAME]", at, item).into_iter().flatten() {
                        let (at, name) = (name.span().start, name.into_inner());
                        self.publishers.push(Declared { name: name.to_string(), at });
                        if let Some(table) = self.table(&format!("[publisher.{name}]"), at, item) {
                            publishers.extend(publisher(places, &name, at, table, &mut self.wrong));
                        }
                    }
                }
                "route" => {
                    for item in self.list("route", at, item) {
                        route_sections += 1;
                        let at = item.span().start;
                        let section = format!("[[route]] number {route_sections}");
                        let Some(table) = self.table("[[route]]", at, item) else { continue };
                        let keys = table.iter().map(|(key, _)| (key.get_ref().to_string(), key.span().start)).collect();
                        if let Some(route) = places.read::<RouteSection>(at, &section, table, &mut self.wrong) {
                            routes.push(route);
                            places_of_routes.push(RoutePlace { at, keys });
                        }
                    }
                }
                other => self.unknown(other, at),
            }
        }
        let all_are_read = routes.len() == route_sections;
        self.agree(&routes, &places_of_routes, all_are_read);
        FileError::if_any(std::mem::take(&mut self.wrong))?;
        let file = RelayFile {
            path: places.path.to_owned(),
            digest: digest(places.text),
            read_at: SystemClock.now(),
            server,
            accounts,
            given,
            sources,
            publishers,
            routes,
        };
        self.reached(&file, &places_of_routes);
        self.check_routes(&file, &places_of_routes);
        FileError::if_any(self.wrong)?;
        Ok(file)
    }

    /// Adds something that is wrong at a place.
    fn refuse(&mut self, at: usize, section: &str, problem: impl Into<String>) {
        self.wrong.push(self.places.wrong(at, section, problem));
    }

    fn unknown(&mut self, name: &str, at: usize) {
        let meant = ["relay", "source", "publisher", "route"]
            .into_iter()
            .find(|known| strsim::damerau_levenshtein(name, known) <= 2)
            .map(|known| format!(" did you mean `{known}`?"));
        // What it holds may be what others miss.
        self.has_nameless = true;
        let meant = meant.unwrap_or_default();
        let problem =
            format!("unknown section `{name}`;{meant} there are [relay], [[source]], [publisher.NAME] and [[route]]");
        self.refuse(at, "", problem);
    }

    /// Checks section `[relay]`, whose keys `batch` and `console` are at these places, and returns the accounts of a console that may be served.
    fn check_server(&mut self, server: &ServerSettings, [at_batch, at_console]: [usize; 2]) -> Option<Accounts> {
        if !(1..=10_000).contains(&server.batch) {
            let problem = format!("`batch` is {}; set a number from 1 to 10000", server.batch);
            self.refuse(at_batch, "[relay]", problem);
        }
        let console = server.console.as_ref()?;
        let accounts = console.accounts().map_err(ConsoleError::from);
        let served = accounts.and_then(|accounts| console.access_by(accounts.clone()).map(|_| accounts));
        served.unwrap_or_else(|error| {
            self.refuse(at_console, "[relay.console]", error.to_string());
            None
        })
    }

    fn table<'i>(&mut self, section: &str, at: usize, item: Item<'i>) -> Option<DeTable<'i>> {
        match item.into_inner() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.has_nameless = true;
                self.refuse(at, "", format!("is no section; write `{section}`"));
                None
            }
        }
    }

    fn list<'i>(&mut self, name: &str, at: usize, item: Item<'i>) -> Vec<Item<'i>> {
        match item.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            _ => {
                self.has_nameless = true;
                self.refuse(at, "", format!("`{name}` is no list; write `[[{name}]]`, once for each"));
                Vec::new()
            }
        }
    }

    fn source(&mut self, item: Item<'_>) -> Option<Source> {
        let (at, places) = (item.span().start, self.places);
        let mut table = self.table("[[source]]", at, item)?;
        let at_name = place_of(&table, "name").unwrap_or(at);
        let name = match table.remove("name").map(Spanned::into_inner) {
            Some(DeValue::String(name)) if is_name(&name) => name.into_owned(),
            given => {
                self.has_nameless = true;
                let problem = match given {
                    Some(_) => "`name` is not made of letters, digits, `-` and `_`; rename it",
                    None => "`name` is missing; give it one, such as \"shop\"",
                };
                self.refuse(at_name, "[[source]]", problem);
                return None;
            }
        };
        self.sources.push(Declared { name: name.clone(), at: at_name });
        let section = format!("source `{name}`");
        let load = || {
            let loader = Loader::new().table(places.path, places.text, &table)?.environment_of(variables(&name));
            DEFAULTS.into_iter().fold(loader, |loader, (key, value)| loader.unless_set(key, value)).load()
        };
        let settings = match load() {
            Ok(settings) => settings,
            Err(error) => {
                let wrong = error.each().into_iter().map(|error| match error {
                    // What is not given has no line of its own.
                    pillarbox_config::Error::Invalid { origin: None, .. } => {
                        places.wrong(at, &section, error.to_string())
                    }
                    error => FileError::Source { source_name: name.clone(), error: Box::new(error) },
                });
                self.wrong.extend(wrong);
                return None;
            }
        };
        if settings.mode == pillarbox_config::Mode::WriterOnly || !settings.enabled {
            let key = if settings.enabled { "mode" } else { "enabled" };
            let problem =
                "delivers nothing: it is switched off, or in mode `writer_only`; remove it, or let it deliver";
            self.refuse(place_of(&table, key).unwrap_or(at), &section, problem);
            return None;
        }
        if let Some(handler) = settings.handler.keys().next() {
            let problem = format!(
                "has settings of a handler, `handler.{handler}`; a relay has routes: set `concurrency` and `rate` there"
            );
            self.refuse(place_of(&table, &format!("handler.{handler}")).unwrap_or(at), &section, problem);
            return None;
        }
        let url = match settings.database_url() {
            Err(error @ pillarbox_config::Error::Invalid { origin: None, .. }) => {
                self.refuse(at, &section, error.to_string());
                return None;
            }
            // What a file holds may come later.
            read => read.ok(),
        };
        let certificates = url.as_ref().map(certificates).unwrap_or_default();
        Some(Source { name, settings, url, certificates })
    }

    /// Checks that each route has something left for it, in one source at least.
    fn reached(&mut self, file: &RelayFile, places: &[RoutePlace]) {
        let mut hidden: BTreeMap<usize, Option<Vec<usize>>> = BTreeMap::new();
        for reach in file.sources.iter().flat_map(|source| file.reach(&source.name)) {
            let found = hidden.entry(reach.number).or_insert_with(|| Some(reach.hidden_by.clone()));
            if reach.hidden_by.is_empty() {
                *found = None;
            }
        }
        let name = |number: usize| file.routes.get(number).map(|route| format!("route `{}`", route.name));
        for (number, by) in hidden {
            let (Some(section), Some(place), Some(by)) = (name(number), places.get(number), by) else { continue };
            let by: Vec<String> = by.into_iter().filter_map(name).collect();
            let problem = format!(
                "it gets no event: {} before it takes all that it asks for; move it up, or narrow that one",
                by.join(" or ")
            );
            self.refuse(place.at, &section, problem);
        }
    }

    /// Checks each route of each source, and that the routes of a source can be together.
    fn check_routes(&mut self, file: &RelayFile, places: &[RoutePlace]) {
        for source in &file.sources {
            let section = format!("source `{}`", source.name);
            // Nothing is made, whose metrics would be those of routes at work.
            let alone = file.reach(&source.name).into_iter().filter(|reach| reach.hidden_by.is_empty());
            let wrong: Vec<(usize, RouteError)> = alone
                .filter_map(|reach| Some((reach.number, Routes::new().route(reach.route).check().err()?)))
                .collect();
            let together = if wrong.is_empty() { file.routes_of(&source.name).check().err() } else { None };
            for (number, error) in wrong {
                // A route of several sources is as wrong in each.
                let earlier = file.sources.iter().take_while(|other| other.name != source.name);
                let is_known = |route: &RouteSection| earlier.clone().any(|other| route.is_for(&other.name));
                if !file.routes.get(number).is_some_and(is_known) {
                    let at = places.get(number).map_or(0, |place| place.of(error.field()));
                    self.refuse(at, &section, error.to_string());
                }
            }
            if let Some(error) = together {
                let named = |route: &RouteSection| error.to_string().contains(&format!("`{}`", route.name));
                let place = file.routes.iter().rposition(named).and_then(|number| places.get(number));
                self.refuse(place.map_or(0, |place| place.of(error.field())), &section, error.to_string());
            }
        }
    }

    /// Checks that the sources, publishers and routes agree, so that each name stands for something that is there.
    fn agree(&mut self, routes: &[RouteSection], places: &[RoutePlace], all_are_read: bool) {
        if self.sources.is_empty() && !self.has_nameless {
            self.refuse(0, "", "there is no [[source]]; name a database to deliver from");
        }
        let mut prefixes: BTreeMap<String, &str> = BTreeMap::new();
        let mut wrong = Vec::new();
        for Declared { name, at } in &self.sources {
            let problem = match prefixes.insert(variables(name), name) {
                Some(other) if other == name => format!("two sources are named `{name}`; rename one"),
                Some(other) => {
                    let prefix = variables(name);
                    format!("the variables of sources `{other}` and `{name}` all begin with `{prefix}`; rename one")
                }
                None => continue,
            };
            wrong.push(self.places.wrong(*at, "", problem));
        }
        for (route, place) in routes.iter().zip(places) {
            let section = format!("route `{}`", route.name);
            let mut refuse = |key: &str, problem: String| {
                wrong.push(self.places.wrong(place.of(key), &section, problem));
            };
            if let Some((key, contradiction)) = route.contradiction() {
                refuse(key.unwrap_or_default(), contradiction.to_owned());
            }
            let is_there = |all: &[Declared], name: &str| self.has_nameless || all.iter().any(|one| one.name == *name);
            if let Some(name) = route.publisher.as_ref().filter(|name| !is_there(&self.publishers, name)) {
                refuse("publisher", format!("there is no [publisher.{name}]; add it, or correct the name"));
            }
            for name in route.sources.iter().filter(|name| !is_there(&self.sources, name)) {
                refuse("sources", format!("there is no source named `{name}`; correct the name"));
            }
        }
        if all_are_read && !self.has_nameless {
            let used = |name: &str| routes.iter().any(|route| route.publisher.as_deref() == Some(name));
            for Declared { name, at } in self.publishers.iter().filter(|publisher| !used(&publisher.name)) {
                let problem = "no route uses it; name it in a [[route]], or take it out";
                wrong.push(self.places.wrong(*at, &format!("[publisher.{name}]"), problem));
            }
            let takes = |source: &Declared| routes.iter().any(|route| route.is_for(&source.name));
            for Declared { name, at } in self.sources.iter().filter(|source| !takes(source)) {
                let problem = format!("there is no [[route]] for source `{name}`; add one");
                wrong.push(self.places.wrong(*at, "", problem));
            }
        }
        self.wrong.extend(wrong);
    }
}

/// The prefix of the variables of a source.
pub(super) fn variables(source: &str) -> String {
    format!("PILLARBOX_{}_", source.replace('-', "_").to_ascii_uppercase())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]
mod tests {
    use super::*;

    /// A certificate that is renewed in its place leaves the text of the URL as it was.
    #[test]
    fn a_place_is_a_url_without_the_user_and_parameters() {
        for (url, expected) in [
            ("postgres://u:p%40@h:5433/d?sslmode=require&x=a@b", "h:5433/d"),
            ("postgres://other@h:5433/d", "h:5433/d"),
            ("mysql://h/d", "h/d"),
            ("shop.db", "shop.db"),
        ] {
            assert_eq!(place(url), expected);
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_read_makes_no_other_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, own) = (folder.path().join("relay.toml"), folder.path().join("own.pem"));
        let url = format!("postgres://u@h/d?sslmode=verify-full&sslrootcert={}", own.display());
        let text =
            format!("[[source]]\nname = \"shop\"\nstore.url = \"{url}\"\n[[route]]\nname = \"all\"\ndrop = true\n");
        std::fs::write(&file, text).expect("writes");
        let source = |certificate: Option<&str>| {
            let _ = std::fs::remove_file(&own);
            certificate.inspect(|text| std::fs::write(&own, text).expect("writes"));
            RelayFile::read(&file).expect("is right").sources.remove(0)
        };
        let before = source(Some("first"));
        assert!(source(Some("first")).is_same(&before));
        assert!(source(None).is_same(&before), "it is being written");
        assert!(!source(Some("second")).is_same(&before));
    }

    #[test]
    fn a_source_is_another_one_once_a_certificate_of_its_url_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("a b.pem"), folder.path().join("other.pem"));
        let encoded = own.display().to_string().replace(' ', "%20");
        let url = DatabaseUrl::from(format!("postgres://u@h/d?sslmode=verify-full&sslrootcert={encoded}"));
        assert_eq!(certificates(&url), [None]);
        std::fs::write(&own, "first").expect("writes");
        std::fs::write(&other, "other").expect("writes");
        assert_eq!(certificates(&url), [Some(b"first".to_vec())]);
        std::fs::write(&own, "second").expect("writes");
        assert_eq!(certificates(&url), [Some(b"second".to_vec())]);
        let url =
            format!("mysql://u@h/d?ssl-mode=verify_identity&ssl-ca={}&ssl-cert=&socket={encoded}", other.display());
        assert_eq!(certificates(&url.into()), [Some(b"other".to_vec()), None]);
        assert!(certificates(&"shop.db".into()).is_empty());
    }
}
