use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Publisher;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::FileError;
use super::error::{Places, place_of};
use super::file_setting::FileSetting;

/// A broker of the file.
#[derive(Debug)]
pub(crate) struct PublisherSection {
    pub(crate) name: String,
    pub(crate) publisher: Arc<dyn Publisher>,
    /// The values of the section.
    pub(super) given: Vec<FileSetting>,
    made_of: MadeOf,
}

impl PublisherSection {
    /// True if both say the same, secrets and what their files hold included.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.made_of, &other.made_of);
        self.name == other.name && own.authorities == others.authorities && own.options.equals(others.options.as_any())
    }
}

/// The settings that a publisher was made of.
struct MadeOf {
    options: Box<dyn Options>,
    /// The bytes of `ca_file`, which is read once.
    authorities: Option<Vec<u8>>,
}

/// Without the options, which hold secrets.
impl fmt::Debug for MadeOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeOf").finish_non_exhaustive()
    }
}

/// The options of a publisher of some kind, to be compared with others.
trait Options: Any + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<O: Any + PartialEq + Send + Sync> Options for O {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The kinds there are, and the features that bring them.
const KINDS: [&str; 8] = ["nats", "rabbitmq", "redis", "mqtt", "webhook", "kafka", "sns", "sqs"];

type Table<'i> = DeTable<'i>;

type Made = (Arc<dyn Publisher>, Box<dyn Options>);

/// Reads section `[publisher.NAME]`, and makes the publisher. Nothing is connected to. What is wrong is added to `wrong`; `None` if anything is.
pub(super) fn publisher(
    places: Places<'_>,
    name: &str,
    at: usize,
    mut table: Table<'_>,
    wrong: &mut Vec<FileError>,
) -> Option<PublisherSection> {
    let section = format!("[publisher.{name}]");
    let given = FileSetting::all(places, &table);
    let at_kind = place_of(&table, "kind").unwrap_or(at);
    let kind = match table.remove("kind").map(|kind| kind.into_inner()) {
        Some(DeValue::String(kind)) => kind.into_owned(),
        Some(_) => {
            let problem = "`kind` is no text; name the kind of broker, such as \"nats\"";
            wrong.push(places.wrong(at_kind, &section, problem));
            return None;
        }
        None => {
            let problem = format!("`kind` is missing; write one of {}", KINDS.join(", "));
            wrong.push(places.wrong(at, &section, problem));
            return None;
        }
    };
    let authorities = match table.get("ca_file").map(|file| file.get_ref()) {
        Some(DeValue::String(file)) => std::fs::read(&**file).ok(),
        _ => None,
    };
    let reading = Reading { places, section: &section, at, at_kind, table, wrong };
    let (publisher, options) = reading.make(&kind)?;
    Some(PublisherSection { name: name.to_owned(), publisher, given, made_of: MadeOf { options, authorities } })
}

/// A publisher of a kind at a URL, all else as it is by default. Nothing is connected to.
///
/// # Errors
/// A kind that this build does not have, or a URL that the kind refuses.
pub fn publisher_at(kind: &str, url: &str) -> Result<Arc<dyn Publisher>, FileError> {
    let quoted = url.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("kind = \"{kind}\"\nurl = \"{quoted}\"\n");
    let places = Places { path: Path::new("command line"), text: "" };
    let table = DeTable::parse(&text).map_err(|error| places.wrong(0, "", error.message()))?.into_inner();
    let mut wrong = Vec::new();
    let made = publisher(places, kind, 0, table, &mut wrong);
    FileError::if_any(wrong)?;
    made.map(|section| section.publisher).ok_or_else(|| places.wrong(0, "", "it makes no publisher"))
}

struct Reading<'a, 'i> {
    places: Places<'a>,
    section: &'a str,
    at: usize,
    at_kind: usize,
    table: Table<'i>,
    wrong: &'a mut Vec<FileError>,
}

impl Reading<'_, '_> {
    fn make(self, kind: &str) -> Option<Made> {
        let problem = match kind {
            #[cfg(feature = "kafka")]
            "kafka" => return self.with(pillarbox_kafka::KafkaPublisher::new),
            #[cfg(feature = "mqtt")]
            "mqtt" => return self.with(pillarbox_mqtt::MqttPublisher::new),
            #[cfg(feature = "nats")]
            "nats" => return self.with(pillarbox_nats::NatsPublisher::new),
            #[cfg(feature = "rabbitmq")]
            "rabbitmq" => return self.with(pillarbox_rabbitmq::RabbitMqPublisher::new),
            #[cfg(feature = "redis")]
            "redis" => return self.with(pillarbox_redis::RedisPublisher::new),
            #[cfg(feature = "aws")]
            "sns" => return self.with(pillarbox_aws::SnsPublisher::new),
            #[cfg(feature = "aws")]
            "sqs" => return self.with(pillarbox_aws::SqsPublisher::new),
            #[cfg(feature = "webhook")]
            "webhook" => return self.with(pillarbox_webhook::WebhookPublisher::new),
            kind if KINDS.contains(&kind) => {
                let feature = if kind == "sns" || kind == "sqs" { "aws" } else { kind };
                format!(
                    "this build has no publisher of kind \"{kind}\"; take one that was built with `--features {feature}`"
                )
            }
            _ => format!("`kind` is \"{kind}\", which does not exist; write one of {}", KINDS.join(", ")),
        };
        self.wrong.push(self.places.wrong(self.at_kind, self.section, problem));
        None
    }

    /// Reads the options, and makes the publisher of them.
    #[allow(dead_code, reason = "unused in a build without any publisher")]
    fn with<O, P>(self, new: impl FnOnce(O) -> Result<P, ConfigError>) -> Option<Made>
    where
        O: for<'de> Deserialize<'de> + Clone + PartialEq + Send + Sync + 'static,
        P: Publisher,
    {
        let Self { places, section, at, at_kind: _, table, wrong } = self;
        let options: O = places.read(at, section, table.clone(), wrong)?;
        match new(options.clone()) {
            Ok(publisher) => Some((Arc::new(publisher), Box::new(options))),
            Err(error) => {
                let problem = format!("`{}` {}; {}", error.field(), error.problem(), error.remedy());
                wrong.push(places.wrong(place_of(&table, error.field()).unwrap_or(at), section, problem));
                None
            }
        }
    }
}
