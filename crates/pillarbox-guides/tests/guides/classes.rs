//! The class of each block.

use std::collections::BTreeMap;
use std::fs;

use crate::blocks::{Block, Place, blocks, harnesses, pages, root};

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Compiled here, in a harness.
    Compiled,
    /// Read here by the reader that it is for.
    Read,
    /// Run here, on a database.
    Run,
    /// Compiled, read or run by this other test or script.
    Elsewhere(&'static str),
    /// Only shown, for this reason.
    Shown(&'static str),
}

const OTHER_CRATES: &str = "code of another project, beside ours for comparison";
const OTHER_LANGUAGES: &str = "its compiler is not asked for by this project";
const OTHER_FILES: &str = "the configuration of another program";
const NO_CODE: &str = "a picture, an output, or an expression";

/// Blocks by page and language. `*` is every page.
const NAMED: &[(&str, &str, Class)] = &[
    ("README.md", "rust", Class::Elsewhere("examples/first-event/tests/readme.rs")),
    ("docs/codecs.md", "rust", Class::Elsewhere("crates/pillarbox/src/lib.rs")),
    ("docs/context.md", "rust", Class::Elsewhere("crates/pillarbox/src/lib.rs")),
    ("docs/testing.md", "rust", Class::Elsewhere("examples/tested-orders/tests/service/pages.rs")),
    ("docs/coming-from.md", "rust", Class::Elsewhere("examples/tested-orders/tests/service/pages.rs")),
    ("docs/coming-from.md", "rs", Class::Shown(OTHER_CRATES)),
    ("docs/coming-from.md", "sql", Class::Shown(OTHER_CRATES)),
    ("docs/sql-contract.md", "sql postgres", Class::Elsewhere("crates/pillarbox/tests/facade/sql_contract.rs")),
    ("docs/sql-contract.md", "sql mysql", Class::Elsewhere("stores/mysql/tests/store/guides.rs")),
    ("docs/inbox.md", "sql mysql", Class::Elsewhere("stores/mysql/tests/store/guides.rs")),
    ("docs/sql-contract.md", "sql sqlite", Class::Elsewhere("crates/pillarbox/tests/facade/sql_contract.rs")),
    ("docs/sql-contract.md", "properties", Class::Shown(OTHER_FILES)),
    ("docs/sql-contract.md", "python sqlite3", Class::Elsewhere("crates/pillarbox/tests/facade/sql_contract.rs")),
    ("docs/migrating-from-namastack.md", "sql", Class::Elsewhere("stores/postgres/tests/store/predecessors.rs")),
    ("docs/migrating-from-namastack.md", "yaml", Class::Shown(OTHER_FILES)),
    ("docs/migrating-from-outbox-java.md", "sql", Class::Elsewhere("stores/postgres/tests/store/predecessors.rs")),
    ("docs/relay.md", "sql mysql", Class::Elsewhere("stores/mysql/tests/store/privileges.rs")),
    ("docs/metrics.md", "yaml", Class::Elsewhere("scripts/deployment")),
    ("docs/brokers/mqtt.md", "", Class::Shown(OTHER_FILES)),
    ("docs/brokers/nats.md", "", Class::Shown(OTHER_FILES)),
    ("docs/brokers/redis.md", "", Class::Shown(OTHER_FILES)),
    ("*", "toml", Class::Read),
    ("*", "json", Class::Read),
    ("*", "python", Class::Read),
    ("*", "sql", Class::Run),
    ("*", "sh", Class::Elsewhere("crates/pillarbox-cli/tests/cli/guides.rs")),
    ("*", "java", Class::Shown(OTHER_LANGUAGES)),
    ("*", "kotlin", Class::Shown(OTHER_LANGUAGES)),
    ("*", "go", Class::Shown(OTHER_LANGUAGES)),
    ("*", "js", Class::Shown(OTHER_LANGUAGES)),
    ("*", "text", Class::Shown(NO_CODE)),
    ("*", "console", Class::Shown(NO_CODE)),
    ("*", "promql", Class::Shown(NO_CODE)),
];

/// The class that a block has by its page and language.
fn named(block: &Block) -> Option<Class> {
    let of = |page: &str| NAMED.iter().find(|(named, language, _)| *named == page && *language == block.language);
    of(&block.page).or_else(|| of("*")).map(|(.., class)| *class)
}

/// All blocks of one class that have this language.
pub(crate) fn all(class: Class, language: &str) -> Vec<Block> {
    let blocks = pages().expect("the pages").into_iter().flat_map(|page| blocks(&page).expect("its blocks"));
    let found: Vec<_> = blocks.filter(|block| block.language == language && named(block) == Some(class)).collect();
    assert!(!found.is_empty(), "no block of {language} is {class:?}");
    found
}

/// The places of blocks in the harnesses: page and line of each block.
fn compiled() -> Vec<(String, usize)> {
    let harnesses = harnesses().expect("the harnesses");
    let places = harnesses.iter().flat_map(|(_, text)| text.lines().filter_map(Place::of));
    let blocks = places.map(|place| place.block().unwrap_or_else(|error| panic!("{error}")));
    blocks.map(|block| (block.page, block.line)).collect()
}

#[test]
fn every_block_is_in_a_class() {
    let compiled = compiled();
    let mut counts = BTreeMap::new();
    let mut problems = Vec::new();
    for page in pages().expect("the pages") {
        for block in blocks(&page).expect("its blocks") {
            let Block { page, line, language, .. } = &block;
            let times = compiled.iter().filter(|(of, at)| (of, at) == (page, line)).count();
            match (times, named(&block)) {
                (1, None) => *counts.entry(Class::Compiled).or_insert(0) += 1,
                (0, Some(class)) => *counts.entry(class).or_insert(0) += 1,
                (0, None) => problems.push(format!(
                    "{page}:{line}: nothing checks this block of `{language}`. Rust gets a place in crates/pillarbox-guides/harness; \
                     for another language see the table in tests/guides/classes.rs"
                )),
                _ => problems.push(format!("{page}:{line}: this block is in two classes, or has two places")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(counts[&Class::Compiled] > 30 && counts[&Class::Read] > 20, "{counts:#?}");
}

#[test]
fn pages_checked_elsewhere_are_named_there() {
    for (page, _, class) in NAMED {
        let Class::Elsewhere(path) = class else { continue };
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let reads = if *page == "*" { "blocks.rs" } else { page };
        assert!(text.contains(reads), "{path} does not read {page}");
    }
}
