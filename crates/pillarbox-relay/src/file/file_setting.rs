//! The settings of a file outside of its sources, for people: section `[relay]`, and the publishers.

use pillarbox_console::Setting;
use pillarbox_routes::Unrouted;
use toml::de::{DeTable, DeValue};

use super::error::Places;
use super::{PublisherSection, RelayFile, ServerSettings};

/// The text in the place of one that may be a secret.
const NOT_SHOWN: &str = "given, not shown";

/// Options of publishers that are text and never a secret.
const PLAIN: [&str; 5] = ["kind", "profile", "region", "user", "username"];

/// A value that the file gives in a section.
#[derive(Debug, Clone)]
pub(super) struct FileSetting {
    /// Its key in the section, such as `console.listen`.
    key: String,
    /// As far as it may be shown.
    value: String,
    /// The line, from 1.
    line: usize,
}

impl FileSetting {
    /// All values of a section.
    pub(super) fn all(places: Places<'_>, section: &DeTable<'_>) -> Vec<Self> {
        let mut all = Vec::new();
        collect(places, "", section, &mut all);
        all
    }
}

fn collect(places: Places<'_>, prefix: &str, section: &DeTable<'_>, all: &mut Vec<FileSetting>) {
    for (name, value) in section {
        let key = format!("{prefix}{}", name.get_ref());
        let value = match value.get_ref() {
            DeValue::Table(table) => {
                collect(places, &format!("{key}."), table, all);
                continue;
            }
            DeValue::String(text) => shown(&key, text),
            DeValue::Array(values) if values.is_empty() => "[]".to_owned(),
            DeValue::Array(_) => NOT_SHOWN.to_owned(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(is_so) => is_so.to_string(),
            DeValue::Datetime(date) => date.to_string(),
        };
        all.push(FileSetting { key, value, line: places.line(name.span().start) });
    }
}

/// A text as it may be shown: of the options of publishers, of which there are many, those that cannot be secrets.
fn shown(key: &str, text: &str) -> String {
    let names_a_place = ["_file", ".file", ".env"].iter().any(|end| key.ends_with(end));
    let is_plain = PLAIN.contains(&key) || names_a_place || humantime::parse_duration(text).is_ok();
    if is_plain { text.to_owned() } else { NOT_SHOWN.to_owned() }
}

impl RelayFile {
    /// The settings that a source's events meet outside of its own section: those of `[relay]`, and of the publishers of its routes.
    pub(crate) fn settings_around(&self, source: &str) -> Vec<Setting> {
        let origin = |given: &FileSetting| format!("{}, line {}", self.path.display(), given.line);
        let of_relay = self.server.shown().into_iter().map(|(key, value)| {
            let given = self.given.iter().find(|given| given.key == key);
            Setting { key: format!("relay.{key}"), value, origin: given.map(origin) }
        });
        let is_used = |publisher: &&PublisherSection| {
            let mut routes = self.routes.iter().filter(|route| route.is_for(source));
            routes.any(|route| route.publisher.as_deref() == Some(&*publisher.name))
        };
        let of_publishers = self.publishers.iter().filter(is_used).flat_map(|publisher| {
            publisher.given.iter().map(move |given| {
                // Without credentials, which the text of the file may hold.
                let value =
                    if given.key == "url" { publisher.publisher.info().address.clone() } else { given.value.clone() };
                Setting {
                    key: format!("publisher.{}.{}", publisher.name, given.key),
                    value,
                    origin: Some(origin(given)),
                }
            })
        });
        of_relay.chain(of_publishers).collect()
    }
}

fn unrouted_as_given(unrouted: Unrouted) -> String {
    match unrouted {
        Unrouted::Dead => "dead".to_owned(),
        Unrouted::Drop => "drop".to_owned(),
        Unrouted::Park(delay) => format!("park {}", humantime::format_duration(delay)),
    }
}

impl ServerSettings {
    /// Keys and values, as a file would give them; `–` for none.
    fn shown(&self) -> Vec<(&'static str, String)> {
        let Self { listen, on_unavailable, batch, unrouted, console } = self;
        let or_none = |given: Option<String>| given.unwrap_or_else(|| "–".to_owned());
        let mut all = vec![
            ("batch", batch.to_string()),
            ("listen", or_none(listen.map(|address| address.to_string()))),
            ("on_unavailable", on_unavailable.name().to_owned()),
            ("unrouted", unrouted_as_given(*unrouted)),
        ];
        if let Some(console) = console {
            let path =
                |file: &Option<std::path::PathBuf>| or_none(file.as_ref().map(|file| file.display().to_string()));
            all.extend([
                ("console.listen", console.listen.to_string()),
                ("console.mask_payloads", console.mask_payloads.to_string()),
                ("console.password_file", path(&console.password_file)),
                ("console.read_only", console.read_only.to_string()),
                ("console.read_password_file", path(&console.read_password_file)),
                ("console.trace_link", or_none(console.trace_link.clone())),
                ("console.users_file", path(&console.users_file)),
            ]);
        }
        all
    }
}

#[cfg(all(test, feature = "nats"))]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails by panicking")]

    use super::*;

    const FILE: &str = r#"
[relay]
batch = 100
unrouted = "park 1m"
console.read_only = true
[[source]]
name = "shop"
store.url = "sqlite://shop.db"
[[source]]
name = "billing"
store.url = "sqlite://billing.db"
[publisher.events]
kind = "nats"
url = "tls://relay:s3cret@broker.example:4222"
timeout = "5s"
[publisher.others]
kind = "nats"
url = "tls://broker.example:4222"
token = { file = "token" }
[[route]]
name = "orders"
publisher = "events"
to = "orders"
sources = ["shop"]
[[route]]
name = "rest"
publisher = "others"
to = "rest"
sources = ["billing"]
"#;

    #[test]
    fn settings_around_a_source_are_told_with_their_line_and_without_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, token) = (folder.path().join("relay.toml"), folder.path().join("token"));
        std::fs::write(&token, "t0ken").expect("writes");
        let text = FILE.replace("\"token\"", &format!("{token:?}"));
        std::fs::write(&path, text).expect("writes");
        let file = RelayFile::read(&path).expect("reads");
        let told = |source: &str| {
            let settings = file.settings_around(source).into_iter();
            let line = |origin: String| origin.rsplit_once("line ").map(|(_, line)| line.to_owned());
            settings.map(|it| (it.key, it.value, it.origin.and_then(line))).collect::<Vec<_>>()
        };
        let row =
            |key: &str, value: &str, line: Option<&str>| (key.to_owned(), value.to_owned(), line.map(str::to_owned));
        let shop = told("shop");
        for expected in [
            row("relay.batch", "100", Some("3")),
            row("relay.unrouted", "park 1m", Some("4")),
            row("relay.on_unavailable", "pause", None),
            row("relay.console.read_only", "true", Some("5")),
            row("relay.console.listen", "127.0.0.1:9465", None),
            row("publisher.events.kind", "nats", Some("13")),
            row("publisher.events.url", "tls://broker.example:4222", Some("14")),
            row("publisher.events.timeout", "5s", Some("15")),
        ] {
            assert!(shop.contains(&expected), "{expected:?}: {shop:?}");
        }
        let billing = told("billing");
        assert!(
            billing.contains(&row("publisher.others.token.file", &token.display().to_string(), Some("19"))),
            "{billing:?}"
        );
        for (all, absent) in [(shop, "publisher.others"), (billing, "publisher.events")] {
            let all = format!("{all:?}");
            assert!(!all.contains(absent) && !all.contains("s3cret") && !all.contains("t0ken"), "{all}");
        }
    }
}
