use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pillarbox_core::publisher::Secret;
use serde::Deserialize as _;
use toml::de::DeTable;

use crate::handlers::unite;
use crate::keys::{Keys, tree};
use crate::modes::why_ignored;
use crate::origin::Origins;
use crate::read::{self, Given, PREFIX, environment, file};
use crate::{Error, Origin, Settings};

/// Reads settings from several sources. What the program sets wins over the environment, the environment over files, a
/// later file over an earlier one.
///
/// ```no_run
/// # fn main() -> Result<(), pillarbox_config::Error> {
/// use pillarbox_config::Loader;
///
/// // Two outboxes in one process, each with a file and a prefix of its own.
/// let orders = Loader::new().file("orders.toml").environment_of("ORDERS_OUTBOX_").load()?;
/// let stock = Loader::new().file("stock.toml").environment_of("STOCK_OUTBOX_").set("mode", "multi_node").load()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is read before load() is called"]
pub struct Loader {
    files: Vec<(PathBuf, bool)>,
    prefix: Option<String>,
    variables: Option<Vec<(OsString, OsString)>>,
    /// Not shown by `Debug` of errors: a value may be a URL.
    set: Vec<(String, Secret)>,
    /// The values that hold unless a file or the environment says otherwise.
    unless_set: Vec<(String, Secret)>,
    tables: Vec<Table>,
}

/// A table of a file, read.
#[derive(Clone)]
struct Table(Vec<Given>);

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|given| &given.key)).finish()
    }
}

impl Loader {
    /// Reads nothing yet: the result would be the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a TOML file, which has to be there.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push((path.into(), true));
        self
    }

    /// Reads a TOML file if it is there.
    pub fn optional_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push((path.into(), false));
        self
    }

    /// Reads the variables that begin with `PILLARBOX_`.
    pub fn environment(self) -> Self {
        self.environment_of(PREFIX)
    }

    /// Reads the variables that begin with another prefix, such as `ORDERS_OUTBOX_`: for a second outbox in one process.
    pub fn environment_of(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Takes these variables in the place of the process's own: for tests.
    pub fn variables<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.variables = Some(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// Sets one key, as text: for what the program decides itself, such as by an argument of its command line.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.push((key.into(), Secret::new(Into::<String>::into(value))));
        self
    }

    /// Sets one key, as text, unless any other source does: what a program takes for a better default than the library.
    pub fn unless_set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.unless_set.push((key.into(), Secret::new(Into::<String>::into(value))));
        self
    }

    /// Takes settings from a table of a TOML file that has other things in it as well, as if they were a file of their own.
    /// `text` is the whole of `path`, from which `table` was read.
    ///
    /// # Errors
    /// Keys that do not exist, and values that a key cannot have, each with its line in the file.
    pub fn table(mut self, path: &Path, text: &str, table: &DeTable<'_>) -> Result<Self, Error> {
        self.tables.push(Table(read::table(&Keys::known(), path, text, table)?));
        Ok(self)
    }

    /// Reads all sources and checks what they say.
    ///
    /// # Errors
    /// All that is wrong: a file that cannot be read, a key that does not exist, a value that it cannot have,
    /// a setting that the mode or the database would ignore.
    pub fn load(self) -> Result<Settings, Error> {
        let keys = Keys::known();
        let by_program = |(key, value): (String, Secret)| set(&keys, key, value.expose());
        let unless_set: Vec<Given> = self.unless_set.into_iter().map(by_program).collect::<Result<_, _>>()?;
        let mut layers = Vec::new();
        let mut wrong = Vec::new();
        for (path, required) in &self.files {
            match file(&keys, path, *required) {
                Ok(given) => layers.push(given),
                Err(error) => wrong.push(error),
            }
        }
        layers.extend(self.tables.into_iter().map(|table| table.0));
        if let Some(prefix) = &self.prefix {
            let variables = self.variables.unwrap_or_else(|| std::env::vars_os().collect());
            match environment(&keys, prefix, variables) {
                Ok(given) => layers.push(given),
                Err(error) => wrong.push(error),
            }
        }
        Error::if_any(wrong)?;
        layers.push(self.set.into_iter().map(by_program).collect::<Result<_, _>>()?);
        unite(&mut layers)?;
        let settings = merge(layers, &unless_set)?;
        settings.check()?;
        Ok(settings)
    }
}

fn set(keys: &Keys, key: String, value: &str) -> Result<Given, Error> {
    if keys.kind(&key).is_some() {
        return Given::from_text(keys, key, value, Origin::Program);
    }
    let remedy = keys.nearest(&key).map_or_else(|| "do not set it".to_owned(), |meant| meant.question());
    Err(Error::Unknown { what: "key", name: key, origin: Some(Origin::Program), remedy })
}

/// Later layers win. What holds unless it is set counts as not given: it is no mistake where the mode ignores it.
fn merge(layers: Vec<Vec<Given>>, unless_set: &[Given]) -> Result<Settings, Error> {
    const URL: [&str; 2] = ["store.url", "store.url_file"];
    let mut merged = BTreeMap::new();
    for layer in layers {
        // They are two ways to say the same, so that either replaces both.
        if layer.iter().any(|given| URL.contains(&&*given.key)) {
            for key in URL {
                merged.remove(key);
            }
        }
        merged.extend(layer.into_iter().map(|given| (given.key, (given.value, given.origin))));
    }
    // Each value was tried alone, so that this finds nothing new.
    let read = |others: &[&Given]| {
        let given = merged.iter().map(|(key, (value, _))| (&**key, value));
        Settings::deserialize(tree(given.chain(others.iter().map(|given| (&*given.key, &given.value)))))
            .map_err(|error| Error::invalid("", &Origins::default(), "is inconsistent", error.to_string()))
    };
    // What the mode would ignore stays at its default: a changed value would be refused, and nobody has asked for it.
    let given = read(&[])?;
    let applies = |key: &str| why_ignored(&given, key).or_else(|| given.store.why_ignored(key)).is_none();
    let others = unless_set.iter().filter(|other| !merged.contains_key(&other.key) && applies(&other.key));
    let mut settings = read(&others.collect::<Vec<_>>())?;
    if !merged.contains_key("claim.min_interval") {
        // Whoever sets the longest time between two polls alone means that none is longer.
        settings.claim.min_interval = settings.claim.min_interval.min(settings.claim.max_interval);
    }
    Ok(Settings { origins: Origins::of(merged.into_iter().map(|(key, (_, origin))| (key, origin))), ..settings })
}
