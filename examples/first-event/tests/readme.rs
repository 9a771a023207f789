//! The README's first program does what the README says, with the dependencies that it names.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::process::Command;

const README: &str = include_str!("../../../README.md");
const MANIFEST: &str = include_str!("../Cargo.toml");

#[test]
fn it_prints_one_receipt_each_time_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let output =
            Command::new(env!("CARGO_BIN_EXE_first-event")).current_dir(folder.path()).output().expect("starts");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].starts_with("receipt for o-1: 1250 cents (event ") && lines[0].ends_with(')'), "{text}");
    }
}

#[test]
fn it_is_built_with_the_dependencies_that_the_readme_names() {
    let block = README.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block of TOML").0;
    assert_eq!(dependencies(block), dependencies(MANIFEST));
}

/// The dependencies of a manifest, without the place of `pillarbox`.
fn dependencies(manifest: &str) -> toml::Table {
    let mut manifest: toml::Table = manifest.parse().expect("TOML");
    let mut dependencies =
        manifest.remove("dependencies").and_then(|it| it.try_into::<toml::Table>().ok()).expect("some");
    let pillarbox = dependencies.get_mut("pillarbox").and_then(toml::Value::as_table_mut).expect("a table");
    pillarbox.retain(|name, _| !["path", "version"].contains(&name));
    dependencies
}
