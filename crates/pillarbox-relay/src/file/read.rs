//! Reading a file, with all that is wrong in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pillarbox_config::Loader;
use pillarbox_console::Accounts;
use pillarbox_core::clock::{Clock as _, SystemClock};
use pillarbox_routes::{RouteError, Routes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Places, place_of};
use super::file_setting::FileSetting;
use super::fingerprint::digest;
use super::publisher::publisher;
use super::source::{certificates, variables};
use super::{ConsoleError, FileError, PublisherSection, RelayFile, RouteSection, ServerSettings, Source};

/// Defaults that suit a relay better than those of a service, whose handlers answer one event at a time.
const DEFAULTS: [(&str, &str); 6] = [
    ("dispatch.workers", "32"),
    ("dispatch.cold_capacity", "8000"),
    ("claim.max_interval", "500ms"),
    ("ownership.standby_interval", "500ms"),
    // Longer than a publisher's call may take: 10 s by default.
    ("shutdown.drain_timeout", "15s"),
    // Publishers have time limits of their own, and a batch may wait for the limits of its route.
    ("dispatch.handler_timeout", "never"),
];

/// The setting of which the relay has a form of its own.
const UNROUTABLE: &str = "dispatch.unroutable";

/// The reader of a file, which goes on behind what is wrong.
pub(super) struct Reader<'a> {
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

/// The sections that were read so far.
#[derive(Default)]
struct Sections {
    server: ServerSettings,
    /// The values of section `[relay]`.
    given: Vec<FileSetting>,
    accounts: Option<Accounts>,
    sources: Vec<Arc<Source>>,
    publishers: Vec<PublisherSection>,
    routes: Vec<RouteSection>,
    /// The places of `routes`, in their order.
    places_of_routes: Vec<RoutePlace>,
    /// The number of sections of routes, also of those that cannot be used.
    route_sections: usize,
}

type Item<'i> = Spanned<DeValue<'i>>;

impl<'a> Reader<'a> {
    pub(super) fn new(places: Places<'a>) -> Self {
        Self { places, wrong: Vec::new(), sources: Vec::new(), publishers: Vec::new(), has_nameless: false }
    }

    pub(super) fn read(mut self) -> Result<RelayFile, FileError> {
        let places = self.places;
        let root = DeTable::parse(places.text)
            .map_err(|error| places.wrong(error.span().map_or(0, |span| span.start), "", error.message()))?;
        let mut sections = Sections::default();
        for (name, item) in root.into_inner() {
            let at = name.span().start;
            match &**name.get_ref() {
                "relay" => self.read_server(at, item, &mut sections),
                "source" => {
                    for item in self.list("source", at, item) {
                        sections.sources.extend(self.source(item).map(Arc::new));
                    }
                }
                "publisher" => self.read_publishers(at, item, &mut sections),
                "route" => self.read_routes(at, item, &mut sections),
                other => self.unknown(other, at),
            }
        }
        let Sections { server, given, accounts, sources, publishers, routes, places_of_routes, route_sections } =
            sections;
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

    fn read_server(&mut self, at: usize, item: Item<'_>, sections: &mut Sections) {
        let places = self.places;
        let Some(table) = self.table("[relay]", at, item) else { return };
        sections.given = FileSetting::all(places, &table);
        let keys = ["batch", "console"].map(|key| place_of(&table, key).unwrap_or(at));
        if let Some(read) = places.read(at, "[relay]", table, &mut self.wrong) {
            sections.server = read;
            sections.accounts = self.check_server(&sections.server, keys);
        }
    }

    fn read_publishers(&mut self, at: usize, item: Item<'_>, sections: &mut Sections) {
        let places = self.places;
        for (name, item) in self.table("[publisher.NAME]", at, item).into_iter().flatten() {
            let (at, name) = (name.span().start, name.into_inner());
            self.publishers.push(Declared { name: name.to_string(), at });
            if let Some(table) = self.table(&format!("[publisher.{name}]"), at, item) {
                sections.publishers.extend(publisher(places, &name, at, table, &mut self.wrong));
            }
        }
    }

    fn read_routes(&mut self, at: usize, item: Item<'_>, sections: &mut Sections) {
        let places = self.places;
        for item in self.list("route", at, item) {
            sections.route_sections += 1;
            let at = item.span().start;
            let section = format!("[[route]] number {}", sections.route_sections);
            let Some(table) = self.table("[[route]]", at, item) else { continue };
            let keys = table.iter().map(|(key, _)| (key.get_ref().to_string(), key.span().start)).collect();
            if let Some(route) = places.read::<RouteSection>(at, &section, table, &mut self.wrong) {
                sections.routes.push(route);
                sections.places_of_routes.push(RoutePlace { at, keys });
            }
        }
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
        // Its content may be what other sections miss.
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
                    // A setting that is not given has no line of its own.
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
        let of_routes = |setting: &pillarbox_config::InForce| setting.key == UNROUTABLE && setting.origin.is_some();
        if settings.in_force().iter().any(of_routes) {
            let problem =
                format!("`{UNROUTABLE}` means nothing to a relay, which takes every event; set `unrouted` in [relay]");
            self.refuse(place_of(&table, UNROUTABLE).unwrap_or(at), &section, problem);
            return None;
        }
        let url = match settings.database_url() {
            Err(error @ pillarbox_config::Error::Invalid { origin: None, .. }) => {
                self.refuse(at, &section, error.to_string());
                return None;
            }
            // The content of a file may come later.
            read => read.ok(),
        };
        let certificates = url.as_ref().map(certificates).unwrap_or_default();
        Some(Source { name, settings, url, certificates })
    }

    /// Checks that at least one source has events left for each route.
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

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
