use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pillarbox_config::{Loader, Settings};
use pillarbox_core::store::Store;
use pillarbox_routes::{RouteError, Routes};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::Places;
use super::publisher::publisher;
use super::{FileError, PublisherSection, RouteSection, ServerSettings};

/// A configuration file, read and checked as far as it can be without asking anybody.
#[derive(Debug)]
pub struct RelayFile {
    pub(crate) server: ServerSettings,
    pub(crate) sources: Vec<Source>,
    pub(crate) publishers: Vec<PublisherSection>,
    pub(crate) routes: Vec<RouteSection>,
}

/// A database to deliver from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) settings: Settings,
}

impl Source {
    /// Opens the database, which has to be there: SQLite would create a file of any name.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, pillarbox_config::Error> {
        let url = self.settings.database_url()?;
        if let Some(file) =
            file_of(url.as_str()).filter(|file| !self.settings.store.migrate && !Path::new(file).exists())
        {
            return Err(pillarbox_config::Error::Invalid {
                key: "store.url".into(),
                origin: None,
                problem: format!("names no file: `{file}` does not exist").into(),
                remedy: "check the path, which is relative to where the relay was started, or create the outbox with `pillarbox migrate`".into(),
            });
        }
        self.settings.connect().await
    }
}

/// The file of a URL of SQLite.
fn file_of(url: &str) -> Option<&str> {
    let file = match url.split_once(':') {
        Some(("sqlite", file)) => file.strip_prefix("//").unwrap_or(file),
        None => url,
        // One letter is a drive.
        Some((scheme, _)) if scheme.len() == 1 => url,
        Some(_) => return None,
    };
    let file = file.split('?').next().unwrap_or(file);
    (!file.is_empty() && !file.contains(":memory:")).then_some(file)
}

/// What a relay takes for better defaults than a service, whose handlers answer one event at a time.
const DEFAULTS: [(&str, &str); 4] = [
    ("dispatch.workers", "16"),
    ("dispatch.cold_capacity", "4000"),
    ("claim.max_interval", "500ms"),
    ("ownership.standby_interval", "500ms"),
];

impl RelayFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its line.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| FileError::Unreadable { path: path.to_owned(), source })?;
        Reader { places: Places { path, text: &text } }.read()
    }

    /// Where health, status and metrics are served.
    #[must_use]
    pub fn server(&self) -> &ServerSettings {
        &self.server
    }

    /// The routes that a source's events may take, in their order.
    pub(crate) fn routes_of(&self, source: &str) -> Routes {
        let of_source = self.routes.iter().filter(|route| route.is_for(source));
        of_source.fold(Routes::new().unrouted(self.server.unrouted), |routes, section| {
            let named = |name: &String| self.publishers.iter().find(|publisher| publisher.name == *name);
            let publisher = section.publisher.as_ref().and_then(named).map(|section| section.publisher.clone());
            routes.route(section.route(publisher))
        })
    }
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
        let (mut server, mut sources, mut publishers, mut routes) =
            (ServerSettings::default(), Vec::new(), Vec::new(), Vec::new());
        for (name, item) in root.into_inner() {
            let at = name.span().start;
            match &**name.get_ref() {
                "relay" => server = self.section("[relay]", at, item)?,
                "source" => {
                    for item in self.list("source", at, item)? {
                        sources.push(self.source(item)?);
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
                        let number = routes.len() + 1;
                        let route: RouteSection = self.section(&format!("[[route]] number {number}"), at, item)?;
                        routes.push((at, route));
                    }
                }
                other => {
                    let problem = format!(
                        "unknown section `{other}`; there are [relay], [[source]], [publisher.NAME] and [[route]]"
                    );
                    return Err(places.wrong(at, "", problem));
                }
            }
        }
        if !(1..=10_000).contains(&server.batch) {
            let problem = format!("`batch` is {}; set a number from 1 to 10000", server.batch);
            return Err(places.wrong(0, "[relay]", problem));
        }
        self.agree(&sources, &publishers, &routes)?;
        let routes: Vec<(usize, RouteSection)> = routes;
        let places_of_routes: Vec<(String, usize)> =
            routes.iter().map(|(at, route)| (route.name.clone(), *at)).collect();
        let file =
            RelayFile { server, sources, publishers, routes: routes.into_iter().map(|(_, route)| route).collect() };
        for source in &file.sources {
            let checked: Result<_, RouteError> = file.routes_of(&source.name).build();
            checked.map_err(|error| {
                let at = places_of_routes.iter().find(|(name, _)| error.to_string().contains(&format!("`{name}`")));
                places.wrong(at.map_or(0, |(_, at)| *at), &format!("source `{}`", source.name), error.to_string())
            })?;
        }
        Ok(file)
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
            let variables = format!("PILLARBOX_{}_", name.replace('-', "_").to_ascii_uppercase());
            let loader = Loader::new().table(places.path, places.text, &table)?.environment_of(variables);
            DEFAULTS.into_iter().fold(loader, |loader, (key, value)| loader.unless_set(key, value)).load()
        };
        let settings =
            load().map_err(|error| FileError::Source { source_name: name.clone(), error: Box::new(error) })?;
        if settings.mode == pillarbox_config::Mode::WriterOnly || !settings.enabled {
            let problem =
                "delivers nothing: it is switched off, or in mode `writer_only`; remove it, or let it deliver";
            return Err(places.wrong(at, &format!("source `{name}`"), problem));
        }
        Ok(Source { name, settings })
    }

    /// Whether what names something else names something that is there.
    fn agree(
        &self,
        sources: &[Source],
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
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
