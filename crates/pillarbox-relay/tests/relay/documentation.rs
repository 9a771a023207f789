//! `docs/relay-configuration.md` and the file's reader say the same: every key, and its default; and each example that is a
//! whole file is one.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use pillarbox_relay::{ConsoleSettings, RelayFile, ServerSettings};
use pillarbox_routes::Breaker;

const REFERENCE: &str = include_str!("../../../../docs/relay-configuration.md");
/// What hold whole files beside the reference.
const OTHERS: [(&str, &str); 3] = [
    ("docs/relay.md", include_str!("../../../../docs/relay.md")),
    ("docs/relay-for-other-languages.md", include_str!("../../../../docs/relay-for-other-languages.md")),
    ("deploy/README.md", include_str!("../../../../deploy/README.md")),
];
const DEPLOYED: &str = include_str!("../../../../deploy/relay.toml");

/// A file that lacks nothing but a route.
const SOURCE: &str = "[[source]]\nname = \"shop\"\nstore.url = \"sqlite://shop.db\"\n";
const DROP: &str = "[[route]]\nname = \"all\"\ndrop = true\n";

fn read(text: &str) -> Result<RelayFile, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("relay.toml");
    fs::write(&path, text).expect("writes");
    RelayFile::read(&path).map_err(|error| error.to_string())
}

/// The rows of a section's table: key and default.
fn documented(section: &str) -> BTreeMap<&'static str, &'static str> {
    let heading = format!("\n## `{section}`\n");
    let (_, rest) = REFERENCE.split_once(&heading).unwrap_or_else(|| panic!("there is no section {section}"));
    let text = rest.split("\n## ").next().expect("it has a text");
    let cells = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().trim_matches('`'));
        Some((cells.next()?, cells.nth(1)?))
    };
    let rows: Vec<_> = text.lines().filter_map(cells).collect();
    let table: BTreeMap<_, _> = rows.iter().copied().collect();
    assert_eq!(table.len(), rows.len(), "{section} documents no key twice");
    table
}

/// The keys that a section has, as the refusal of one that it has not says.
fn known(text: &str) -> BTreeSet<String> {
    let error = read(text).expect_err("an unknown key is refused");
    let (_, list) = error.split_once("expected one of ").unwrap_or_else(|| panic!("it lists no keys: {error}"));
    list.split(", ").map(|key| key.trim_matches('`').to_owned()).collect()
}

#[test]
fn the_reference_lists_every_key_and_no_other() {
    for (section, text) in [
        ("[relay]", format!("{SOURCE}{DROP}[relay]\nno_such = 1\n")),
        ("[relay.console]", format!("{SOURCE}{DROP}[relay.console]\nno_such = 1\n")),
        ("[[route]]", format!("{SOURCE}{DROP}no_such = 1\n")),
        ("[route.breaker]", format!("{SOURCE}{DROP}[route.breaker]\nno_such = 1\n")),
    ] {
        let keys: BTreeSet<String> = documented(section).keys().map(|key| (*key).to_owned()).collect();
        assert_eq!(keys, known(&text), "{section}");
    }
}

/// Every key of a route at once, so that each is seen to take a value of the type that is documented.
#[test]
fn every_documented_key_of_a_route_is_read() {
    let values = BTreeMap::from([
        ("name", "\"orders\""),
        ("sources", "[\"shop\"]"),
        ("types", "[\"order.*\"]"),
        ("aggregates", "[\"order\", \"__GLOBAL__\"]"),
        ("tenants", "[\"acme\"]"),
        ("headers", "{ region = \"eu-*\" }"),
        ("drop", "false"),
        ("publisher", "\"missing\""),
        ("to", "\"orders.{event_type}\""),
        ("key", "\"{aggregate_id|none}\""),
        ("format", "\"cloudevents-structured\""),
        ("source", "\"/shop\""),
        ("with_headers", "{ from = \"{tenant_id|none}\" }"),
        ("without_headers", "[\"trace*\"]"),
        ("concurrency", "2"),
        ("rate", "100"),
        ("breaker", "{ failures = 3, pause = \"1s\", max_pause = \"1m\" }"),
    ]);
    let line = |key: &&str| format!("{key} = {}\n", values.get(key).unwrap_or_else(|| panic!("no value for {key}")));
    let route: String = documented("[[route]]").keys().map(line).collect();
    // What is said of the file as a whole is said after all of it was read.
    let error = read(&format!("{SOURCE}[[route]]\n{route}")).expect_err("its publisher is not there");
    assert!(error.contains("route `orders`: there is no [publisher.missing]"), "{error}");
}

#[test]
fn the_reference_tells_the_defaults() {
    let lines = |section: &str, quoted: &[&str]| -> String {
        let line = |(key, default): (&str, &str)| match default {
            "" => String::new(),
            default if quoted.contains(&key) => format!("{key} = \"{default}\"\n"),
            default => format!("{key} = {default}\n"),
        };
        documented(section).into_iter().map(line).collect()
    };
    let file = read(&format!("{SOURCE}{DROP}[relay]\n{}", lines("[relay]", &["on_unavailable", "unrouted"])))
        .expect("the defaults");
    assert_eq!(file.server(), &ServerSettings::default());
    let console = lines("[relay.console]", &["listen"]);
    let file = read(&format!("{SOURCE}{DROP}[relay.console]\n{console}")).expect("the defaults");
    assert_eq!(file.server().console, Some(ConsoleSettings::default()));

    let Breaker { failures, pause, max_pause } = Breaker::default();
    let breaker = documented("[route.breaker]");
    let spans = [pause, max_pause].map(|span| humantime::format_duration(span).to_string());
    assert_eq!(breaker["failures"], failures.to_string());
    assert_eq!([breaker["pause"], breaker["max_pause"]], [&*spans[0], &*spans[1]]);

    let route = documented("[[route]]");
    assert_eq!([route["drop"], route["format"], route["source"]], ["false", "raw", "pillarbox"]);
}

#[test]
fn the_defaults_of_a_source_are_those_of_the_reference() {
    let settings = format!("{:?}", read(&format!("{SOURCE}{DROP}")).expect("a file"));
    let differing = documented("[[source]]");
    assert_eq!(differing.len(), 6, "{differing:?}");
    for (key, default) in differing {
        let (_, field) = key.split_once('.').expect("a section and a field");
        let default = if default == "never" { "None" } else { default };
        let is_so = [",", " }"].iter().any(|end| settings.contains(&format!(" {field}: {default}{end}")));
        assert!(is_so, "{key} is {default} in {settings}");
    }
}

#[test]
fn the_reference_lists_every_kind_of_broker() {
    let error = read(&format!("{SOURCE}{DROP}[publisher.x]\nkind = \"no_such\"\n")).expect_err("no such kind");
    let (_, kinds) = error.split_once("write one of ").expect("it lists them");
    let row = REFERENCE.lines().find(|line| line.starts_with("| `kind` |")).expect("the row");
    let listed = row.split('|').nth(2).expect("its type").replace(" or ", ", ");
    let listed: Vec<&str> = listed.split(',').map(|kind| kind.trim().trim_matches('`')).collect();
    assert_eq!(listed, kinds.split(", ").collect::<Vec<_>>());
}

#[test]
fn a_source_may_have_any_mode_that_delivers() {
    for mode in ["single_node", "multi_node", "partitioned", "ordered"] {
        read(&format!("{SOURCE}mode = \"{mode}\"\n{DROP}")).unwrap_or_else(|error| panic!("{mode}: {error}"));
    }
}

/// The fences of a page that are whole files.
fn whole_files(page: &'static str) -> Vec<&'static str> {
    let fences = page.split("```toml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    fences.filter(|text| text.contains("[[source]]") && text.contains("[[route]]")).collect()
}

/// Text in the place of what says where a secret is, which is not here.
fn with_secrets(text: &str) -> String {
    let mut parts = text.split("{ file = ").flat_map(|part| part.split("{ env = "));
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let (_, rest) = part.split_once(" }").unwrap_or_else(|| panic!("a secret is not closed: {part}"));
        format!("{all}\"secret\"{rest}")
    })
}

/// Kinds of brokers of a file that this build does not have.
fn missing_kinds(text: &str) -> Vec<&str> {
    let kinds =
        text.lines().filter_map(|line| line.trim().strip_prefix("kind = \"")?.split_once('"')).map(|(kind, _)| kind);
    let is_missing = |kind: &&str| {
        let probe = format!("{SOURCE}{DROP}[publisher.x]\nkind = \"{kind}\"\n");
        read(&probe).is_err_and(|error| error.contains("this build has no publisher of kind"))
    };
    kinds.filter(is_missing).collect()
}

#[test]
fn every_example_that_is_a_whole_file_is_one() {
    let pages = OTHERS.into_iter().chain([("docs/relay-configuration.md", REFERENCE)]);
    let mut files: Vec<(&str, &str)> =
        pages.flat_map(|(name, page)| whole_files(page).into_iter().map(move |text| (name, text))).collect();
    assert!(files.len() >= 3, "{files:?}");
    files.push(("deploy/relay.toml", DEPLOYED));
    for (name, text) in files {
        let text = with_secrets(text);
        match (read(&text), &missing_kinds(&text)[..]) {
            (Ok(_), []) => {}
            (Err(error), [_, ..]) if error.contains("this build has no publisher of kind") => {
                // The rest of it is read without its publishers: up to where routes name them.
                let (before, after) = text.split_once("[publisher.").expect("it names a publisher");
                let after = after.split_once("\n[[route]]").map(|(_, routes)| format!("[[route]]{routes}"));
                let error = read(&format!("{before}{}", after.expect("routes stand behind publishers")))
                    .expect_err("no publisher");
                assert!(error.contains("there is no [publisher."), "{name}: {error}\n{text}");
            }
            (read, missing) => panic!("{name} with {missing:?} missing: {:?}\n{text}", read.err()),
        }
    }
}
