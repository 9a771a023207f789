//! What is said of a configuration file that is wrong. What needs a publisher is in the tests of the command line.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use pillarbox_relay::RelayFile;

const SOURCE: &str = "[[source]]\nname = \"shop\"\nstore.url = \"sqlite://shop.db\"\n";
const DROP: &str = "[[route]]\nname = \"all\"\ndrop = true\n";

/// What is said of a source, a route that takes everything, and this.
fn refused(rest: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("relay.toml");
    std::fs::write(&path, format!("{SOURCE}{DROP}{rest}")).expect("writes");
    RelayFile::read(&path).expect_err("it is wrong").to_string()
}

#[test]
fn a_value_of_another_type_is_told_by_line_section_and_key() {
    for (rest, expected) in [
        ("rate = \"4\"\n", "line 7: [[route]] number 1: `rate`: expected a whole number, found text"),
        ("types = \"order.*\"\n", "line 7: [[route]] number 1: `types`: expected a list, found text"),
        (
            "types = [\"a\", 3]\n",
            "line 7: [[route]] number 1: `types[1]`: expected text in quotes, found a whole number",
        ),
        ("concurrency = -1\n", "`concurrency`: expected a whole number, found one that is too small"),
        ("breaker.failures = 1.5\n", "`breaker.failures`: expected a whole number, found a number with a fraction"),
        ("[route.breaker]\npause = \"soon\"\n", "line 8: [[route]] number 1: `breaker.pause`: \"soon\" is no duration"),
        ("[relay]\nbatch = true\n", "line 8: [relay]: `batch`: expected a whole number, found true or false"),
        ("[relay]\nlisten = \"here\"\n", "line 8: [relay]: `listen`: "),
        (
            "[[source]]\nname = \"main\"\nstore.url = \"sqlite://a.db\"\n[source.dispatch]\nworkers = \"4\"\n",
            "line 11) has a value of another type, string; write a whole number",
        ),
    ] {
        let error = refused(rest);
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}
