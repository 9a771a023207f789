use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use pillarbox_config::{DatabaseUrl, InForce, Loader, Settings};
use pillarbox_console::Accounts;
use pillarbox_core::clock::{Clock as _, SystemClock, Timestamp};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::publisher::Publisher;
use pillarbox_core::store::{Store, operation};
use pillarbox_engine::run::StartError;
use pillarbox_routes::{CheckError, Route, RouteError, Routes};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::Places;
use super::given::Given;
use super::on_disk::{digest, read_text};
use super::publisher::publisher;
use super::{ConsoleError, ConsoleSettings, FileError, PublisherSection, RouteSection, ServerSettings};

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

    /// Opens the database, which has to be there: SQLite would create a file of any name.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, pillarbox_config::Error> {
        // Where it may not be looked for, opening it says so.
        let is_missing = |file: &PathBuf| !self.settings.store.migrate && !file.try_exists().unwrap_or(true);
        if let Some(file) = self.settings.sqlite_file()?.filter(is_missing) {
            // It may still be made: the file need not be wrong.
            let problem = format!(
                "`{}` does not exist; check `store.url`, which is relative to where the relay was started, or create the \
                 outbox with `pillarbox migrate`",
                file.display()
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
    /// The first thing that is wrong with it, with its line.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path)?;
        Reader { places: Places { path, text: &text } }.read()
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
}

type Item<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    fn read(&self) -> Result<RelayFile, FileError> {
        let places = self.places;
        let root = DeTable::parse(places.text)
            .map_err(|error| places.wrong(error.span().map_or(0, |span| span.start), "", error.message()))?;
        let (mut server, mut sources, mut publishers) = (ServerSettings::default(), Vec::new(), Vec::new());
        let (mut given, mut routes) = (Vec::new(), Vec::<(usize, RouteSection)>::new());
        for (name, item) in root.into_inner() {
            let at = name.span().start;
            match &**name.get_ref() {
                "relay" => {
                    if let DeValue::Table(table) = item.get_ref() {
                        given = Given::all(places, table);
                    }
                    server = self.section("[relay]", at, item)?;
                }
                "source" => {
                    for item in self.list("source", at, item)? {
                        sources.push(Arc::new(self.source(item)?));
                    }
                }
                "publisher" => {
                    for (name, item) in self.table("[publisher.NAME]", at, item)? {
                        let at = name.span().start;
                        let table = self.table(&format!("[publisher.{}]", name.get_ref()), at, item)?;
                        publishers.push(publisher(places, name.get_ref(), at, table)?);
                    }
                }
                "route" => {
                    for item in self.list("route", at, item)? {
                        let at = item.span().start;
                        let section = format!("[[route]] number {}", routes.len() + 1);
                        routes.push((at, self.section(&section, at, item)?));
                    }
                }
                other => {
                    let meant = ["relay", "source", "publisher", "route"]
                        .into_iter()
                        .find(|known| strsim::damerau_levenshtein(other, known) <= 2)
                        .map(|known| format!(" did you mean `{known}`?"));
                    let meant = meant.unwrap_or_default();
                    let problem = format!(
                        "unknown section `{other}`;{meant} there are [relay], [[source]], [publisher.NAME] and [[route]]"
                    );
                    return Err(places.wrong(at, "", problem));
                }
            }
        }
        if !(1..=10_000).contains(&server.batch) {
            let problem = format!("`batch` is {}; set a number from 1 to 10000", server.batch);
            return Err(places.wrong(0, "[relay]", problem));
        }
        let accounts = match &server.console {
            Some(console) => self.accounts(console)?,
            None => None,
        };
        self.agree(&sources, &publishers, &routes)?;
        let places_of_routes: Vec<(String, usize)> =
            routes.iter().map(|(at, route)| (route.name.clone(), *at)).collect();
        let file = RelayFile {
            path: places.path.to_owned(),
            digest: digest(places.text),
            read_at: SystemClock.now(),
            server,
            accounts,
            given,
            sources,
            publishers,
            routes: routes.into_iter().map(|(_, route)| route).collect(),
        };
        self.reached(&file, &places_of_routes)?;
        for source in &file.sources {
            // Nothing is made, whose metrics would be those of routes at work.
            let checked: Result<_, RouteError> = file.routes_of(&source.name).check();
            checked.map_err(|error| {
                let at = places_of_routes.iter().find(|(name, _)| error.to_string().contains(&format!("`{name}`")));
                places.wrong(at.map_or(0, |(_, at)| *at), &format!("source `{}`", source.name), error.to_string())
            })?;
        }
        Ok(file)
    }

    /// The accounts of a console that may be served.
    fn accounts(&self, console: &ConsoleSettings) -> Result<Option<Accounts>, FileError> {
        let accounts = console.accounts().map_err(ConsoleError::from);
        let served = accounts.and_then(|accounts| console.access_by(accounts.clone()).map(|_| accounts));
        served.map_err(|error| self.places.wrong(0, "[relay.console]", error.to_string()))
    }

    fn section<T: for<'de> Deserialize<'de>>(&self, section: &str, at: usize, item: Item<'_>) -> Result<T, FileError> {
        self.places.read(at, section, ValueDeserializer::from(item))
    }

    fn table<'i>(&self, section: &str, at: usize, item: Item<'i>) -> Result<DeTable<'i>, FileError> {
        match item.into_inner() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.places.wrong(at, "", format!("is no section; write `{section}`"))),
        }
    }

    fn list<'i>(&self, name: &str, at: usize, item: Item<'i>) -> Result<Vec<Item<'i>>, FileError> {
        match item.into_inner() {
            DeValue::Array(items) => Ok(items.into_iter().collect()),
            _ => Err(self.places.wrong(at, "", format!("`{name}` is no list; write `[[{name}]]`, once for each"))),
        }
    }

    fn source(&self, item: Item<'_>) -> Result<Source, FileError> {
        let (at, places) = (item.span().start, self.places);
        let mut table = self.table("[[source]]", at, item)?;
        let name = match table.remove("name").map(Spanned::into_inner) {
            Some(DeValue::String(name)) if is_name(&name) => name.into_owned(),
            Some(_) => {
                return Err(places.wrong(
                    at,
                    "[[source]]",
                    "`name` is not made of letters, digits, `-` and `_`; rename it",
                ));
            }
            None => return Err(places.wrong(at, "[[source]]", "`name` is missing; give it one, such as \"shop\"")),
        };
        let load = || {
            let loader = Loader::new().table(places.path, places.text, &table)?.environment_of(variables(&name));
            DEFAULTS.into_iter().fold(loader, |loader, (key, value)| loader.unless_set(key, value)).load()
        };
        let settings =
            load().map_err(|error| FileError::Source { source_name: name.clone(), error: Box::new(error) })?;
        if settings.mode == pillarbox_config::Mode::WriterOnly || !settings.enabled {
            let problem =
                "delivers nothing: it is switched off, or in mode `writer_only`; remove it, or let it deliver";
            return Err(places.wrong(at, &format!("source `{name}`"), problem));
        }
        if let Some(handler) = settings.handler.keys().next() {
            let problem = format!(
                "has settings of a handler, `handler.{handler}`; a relay has routes: set `concurrency` and `rate` there"
            );
            return Err(places.wrong(at, &format!("source `{name}`"), problem));
        }
        let url = settings.database_url().ok();
        let certificates = url.as_ref().map(certificates).unwrap_or_default();
        Ok(Source { name, settings, url, certificates })
    }

    /// Checks that each route has something left for it, in one source at least.
    fn reached(&self, file: &RelayFile, routes: &[(String, usize)]) -> Result<(), FileError> {
        let mut hidden: BTreeMap<usize, Option<Vec<usize>>> = BTreeMap::new();
        for reach in file.sources.iter().flat_map(|source| file.reach(&source.name)) {
            let found = hidden.entry(reach.number).or_insert_with(|| Some(reach.hidden_by.clone()));
            if reach.hidden_by.is_empty() {
                *found = None;
            }
        }
        let first = hidden.into_iter().find_map(|(number, by)| Some((routes.get(number)?, by?)));
        let Some(((name, at), by)) = first else { return Ok(()) };
        let by: Vec<String> =
            by.into_iter().filter_map(|number| Some(format!("route `{}`", routes.get(number)?.0))).collect();
        let problem = format!(
            "it gets no event: {} before it takes all that it asks for; move it up, or narrow that one",
            by.join(" or ")
        );
        Err(self.places.wrong(*at, &format!("route `{name}`"), problem))
    }

    /// Checks that the sources, publishers and routes agree, so that each name stands for something that is there.
    fn agree(
        &self,
        sources: &[Arc<Source>],
        publishers: &[PublisherSection],
        routes: &[(usize, RouteSection)],
    ) -> Result<(), FileError> {
        let places = self.places;
        if sources.is_empty() {
            return Err(places.wrong(0, "", "there is no [[source]]; name a database to deliver from"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = sources.iter().find(|source| !names.insert(&*source.name)) {
            return Err(places.wrong(0, "", format!("two sources are named `{}`; rename one", twice.name)));
        }
        let mut prefixes: BTreeMap<String, &str> = BTreeMap::new();
        for source in sources {
            if let Some(other) = prefixes.insert(variables(&source.name), &source.name) {
                let (name, prefix) = (&source.name, variables(&source.name));
                let problem =
                    format!("the variables of sources `{other}` and `{name}` all begin with `{prefix}`; rename one");
                return Err(places.wrong(0, "", problem));
            }
        }
        for (at, route) in routes {
            let section = format!("route `{}`", route.name);
            if let Some(contradiction) = route.contradiction() {
                return Err(places.wrong(*at, &section, contradiction));
            }
            let publisher = route.publisher.as_ref();
            if let Some(name) = publisher.filter(|name| !publishers.iter().any(|publisher| publisher.name == **name)) {
                let problem = format!("there is no [publisher.{name}]; add it, or correct the name");
                return Err(places.wrong(*at, &section, problem));
            }
            if let Some(name) = route.sources.iter().find(|name| !sources.iter().any(|source| source.name == **name)) {
                let problem = format!("there is no source named `{name}`; correct the name");
                return Err(places.wrong(*at, &section, problem));
            }
        }
        let used = |name: &str| routes.iter().any(|(_, route)| route.publisher.as_deref() == Some(name));
        if let Some(unused) = publishers.iter().find(|publisher| !used(&publisher.name)) {
            let section = format!("[publisher.{}]", unused.name);
            let problem = "no route uses it; name it in a [[route]], or take it out";
            return Err(places.wrong(unused.at, &section, problem));
        }
        let takes = |source: &Source| routes.iter().any(|(_, route)| route.is_for(&source.name));
        if let Some(idle) = sources.iter().find(|source| !takes(source)) {
            return Err(places.wrong(0, "", format!("there is no [[route]] for source `{}`; add one", idle.name)));
        }
        Ok(())
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
