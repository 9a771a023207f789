//! Files that the guides show are read by those that read them.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pillarbox_config::Settings;
use pillarbox_relay::RelayFile;
use toml::{Table, Value};

use crate::blocks::{Block, root};
use crate::classes::{Class, all};

/// Part of a file becomes a whole one with these.
const SOURCE: &str = "[[source]]\nname = \"shop\"\nstore.url = \"sqlite://shop.db\"\n";
const ROUTE: &str = "[[route]]\nname = \"all\"\ndrop = true\n";
const NATS: &str = "[publisher.nats]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:4222\"\n";

#[test]
fn toml_is_what_its_reader_takes() {
    let (mut relay, mut settings, mut manifests) = (0, 0, 0);
    for block in all(Class::Read, "toml") {
        let Block { page, line, text, .. } = &block;
        let table: Table = text.parse().unwrap_or_else(|error| panic!("{page}:{line}: {error}"));
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        let problem = if has(&["dependencies", "dev-dependencies"]) {
            manifests += 1;
            manifest_problem(&table)
        } else if has(&["relay", "source", "publisher", "route"]) {
            relay += 1;
            relay_problem(&table, text)
        } else {
            settings += 1;
            table.try_into::<Settings>().err().map(|error| error.to_string())
        };
        assert_eq!(problem, None, "{page}:{line}");
    }
    assert!(relay > 10 && settings > 3 && manifests > 2, "{relay} {settings} {manifests}");
}

/// What is wrong with a file of the relay, or a part of one.
fn relay_problem(table: &Table, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut whole = with_secrets(text, folder.path());
    // Tables that a part lacks stand behind its own.
    if !table.contains_key("source") {
        whole.push_str(SOURCE);
    }
    if !table.contains_key("route") {
        let publisher =
            table.get("publisher").and_then(Value::as_table).and_then(|publishers| publishers.keys().next());
        let ends = |name: &String| format!("[[route]]\nname = \"all\"\npublisher = {name:?}\nto = \"orders\"\n");
        whole.push_str(&publisher.map_or_else(|| ROUTE.to_owned(), ends));
    }
    if !table.contains_key("publisher") && text.contains("publisher = \"nats\"") {
        whole.push_str(NATS);
    }
    let path = folder.path().join("relay.toml");
    fs::write(&path, &whole).expect("written");
    RelayFile::read(&path).err().map(|error| format!("{error}\n{whole}"))
}

/// Files in the place of secrets that are not here, and a value in the place of a variable.
fn with_secrets(text: &str, folder: &Path) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        while let Some(start) = line.find("\"/run/secrets/") {
            let end = start + 1 + line[start + 1..].find('"').expect("the end of the path");
            let name = line[start + "\"/run/secrets/".len()..end].to_owned();
            let path = folder.join(&name);
            fs::write(&path, secret(&name)).expect("written");
            line.replace_range(start..=end, &format!("{:?}", path.to_str().expect("text")));
        }
        if let Some((before, rest)) = line.split_once("{ env = ") {
            let (_, after) = rest.split_once('}').expect("the end of the variable");
            line = format!("{before}\"https://hooks.example.com/shop\"{after}");
        }
        whole.push_str(&line);
        whole.push('\n');
    }
    whole
}

/// What such a file holds.
fn secret(name: &str) -> &'static str {
    if name.ends_with("-url") {
        "postgres://relay@127.0.0.1/shop"
    } else if name.starts_with("partner") || name.starts_with("webhook") {
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    } else {
        "secret"
    }
}

/// What is wrong with a part of a manifest: our crates in it have the features that it names.
fn manifest_problem(table: &Table) -> Option<String> {
    let sections = ["dependencies", "dev-dependencies"].into_iter().filter_map(|key| table.get(key)?.as_table());
    for (name, dependency) in sections.flatten().filter(|(name, _)| name.starts_with("pillarbox")) {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(&path) else { return Some(format!("there is no {}", path.display())) };
        let manifest: Table = manifest.parse().expect("a manifest");
        let features = dependency.get("features").and_then(Value::as_array).into_iter().flatten();
        for feature in features.filter_map(Value::as_str) {
            if manifest.get("features").and_then(|features| features.get(feature)).is_none() {
                return Some(format!("{name} has no feature {feature}"));
            }
        }
    }
    None
}

#[test]
fn json_is_json() {
    for Block { page, line, text, .. } in all(Class::Read, "json") {
        for document in text.lines() {
            serde_json::from_str::<serde_json::Value>(document)
                .unwrap_or_else(|error| panic!("{page}:{line}: {error}"));
        }
    }
}

#[test]
fn python_is_python() {
    for Block { page, line, text, .. } in all(Class::Read, "python") {
        let mut python = Command::new("python3")
            .args(["-c", "import ast, sys; ast.parse(sys.stdin.read())"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this test needs python3: see scripts/setup");
        python.stdin.take().expect("its input").write_all(text.as_bytes()).expect("written");
        let output = python.wait_with_output().expect("its end");
        assert!(output.status.success(), "{page}:{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
