//! The sections `handler.NAME`: which handler each is for, and what it sets there.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_core::error::ConfigError;
use pillarbox_engine::handlers::{HandlerConfig, Registration};

use crate::keys::of_handler;
use crate::origin::{Origin, Origins};
use crate::read::Given;
use crate::{Error, HandlerSettings, Settings};

/// The name as variables of the environment spell it: capitals, and an underscore for all that a variable cannot have.
fn spelled(name: &str) -> String {
    let spell = |c: char| if c.is_ascii() && !c.is_ascii_alphanumeric() { '_' } else { c.to_ascii_uppercase() };
    name.chars().map(spell).collect()
}

/// The one of `names` that a variable means which says `name`; several, if it could be each of them.
fn meant<'a>(name: &str, names: &BTreeSet<&'a str>) -> Result<Option<&'a str>, String> {
    if let Some(exact) = names.get(name).copied() {
        return Ok(Some(exact));
    }
    let mut alike = names.iter().filter(|other| spelled(other) == spelled(name));
    match (alike.next(), alike.next()) {
        (Some(one), Some(other)) => Err(format!("could mean `{one}` or `{other}`")),
        (one, _) => Ok(one.copied()),
    }
}

const IN_A_FILE: &str = "set it in a file, by the handler's name";

/// Gives the settings of variables the name that a file or the program spells out, so that both are of one handler.
pub(crate) fn unite(layers: &mut [Vec<Given>]) -> Result<(), Error> {
    let given = layers.iter().flatten().filter(|given| !matches!(given.origin, Origin::Variable(_)));
    let names: BTreeSet<String> =
        given.filter_map(|given| of_handler(&given.key)).map(|(name, _)| name.to_owned()).collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    for given in layers.iter_mut().flatten().filter(|given| matches!(given.origin, Origin::Variable(_))) {
        let Some((name, setting)) = of_handler(&given.key) else { continue };
        match meant(name, &names) {
            Ok(Some(name)) => given.key = format!("handler.{name}.{setting}"),
            Ok(None) => {}
            Err(problem) => {
                let (key, origin) = (given.key.clone().into(), Some(given.origin.clone()));
                return Err(Error::Invalid { key, origin, problem: problem.into(), remedy: IN_A_FILE.into() });
            }
        }
    }
    Ok(())
}

impl Settings {
    /// Checks the sections of handlers, each for itself. The names of the handlers are known to the program alone.
    pub(crate) fn check_handlers(&self) -> Result<(), Error> {
        self.handler.iter().try_for_each(|(name, section)| self.handler_config(name, section).map(drop))
    }

    fn handler_config(&self, name: &str, section: &HandlerSettings) -> Result<HandlerConfig, Error> {
        section.convert(&self.retry).map_err(|complaint| refused(name, &complaint, &self.origins))
    }

    /// Lays each section over the handlers of its name.
    pub(crate) fn configure(&self, registrations: Vec<Registration>) -> Result<Vec<Registration>, Error> {
        let names: BTreeSet<&str> = registrations.iter().filter_map(Registration::name).collect();
        let mut configs = BTreeMap::new();
        for (name, section) in &self.handler {
            let by_variables = self.origins_of(name).all(|origin| matches!(origin, Origin::Variable(_)));
            let has_origin = self.origins_of(name).next().is_some();
            let found = if by_variables && has_origin { meant(name, &names) } else { Ok(names.get(&**name).copied()) };
            match found {
                Ok(Some(handler)) => drop(configs.insert(handler.to_owned(), self.handler_config(name, section)?)),
                Ok(None) => return Err(self.names_no_handler(name, &names)),
                Err(problem) => return Err(self.wrong_section(name, problem, IN_A_FILE.to_owned())),
            }
        }
        let configured = |registration: Registration| match registration.name().and_then(|name| configs.get(name)) {
            Some(config) => registration.configured(config),
            None => registration,
        };
        Ok(registrations.into_iter().map(configured).collect())
    }

    /// The places at which the settings of a handler's section were given.
    fn origins_of(&self, name: &str) -> impl Iterator<Item = &Origin> {
        let is_of_it = move |key: &&str| of_handler(key).is_some_and(|(other, _)| other == name);
        self.origins.keys().filter(is_of_it).filter_map(|key| self.origins.get(key))
    }

    fn names_no_handler(&self, name: &str, names: &BTreeSet<&str>) -> Error {
        let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let remedy = match names.iter().min_by_key(|known| strsim::damerau_levenshtein(name, known)) {
            None => "no handler of this program has a name; give one a name, or remove the section".to_owned(),
            Some(near) if strsim::damerau_levenshtein(name, near) <= 2 => {
                format!("did you mean `{near}`? The handlers with names are {}", all.join(", "))
            }
            Some(_) => format!("the handlers with names are {}", all.join(", ")),
        };
        self.wrong_section(name, "is for a handler that is not registered".to_owned(), remedy)
    }

    fn wrong_section(&self, name: &str, problem: String, remedy: String) -> Error {
        let origin = self.origins_of(name).next().cloned();
        Error::Invalid { key: format!("handler.{name}").into(), origin, problem: problem.into(), remedy: remedy.into() }
    }
}

/// The complaint about a setting of the handler `name`, by the key that it has here.
fn refused(name: &str, complaint: &ConfigError, origins: &Origins) -> Error {
    let setting = match complaint.field() {
        "handler.rate.burst" => "burst",
        field => field.strip_prefix("handler.").unwrap_or(field),
    };
    let key = format!("handler.{name}.{setting}");
    Error::invalid(key, origins, complaint.problem().to_owned(), complaint.remedy().to_owned())
}
