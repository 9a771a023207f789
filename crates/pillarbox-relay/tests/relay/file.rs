//! What is said of a configuration file that is wrong. What needs a publisher is in the tests of the command line.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use pillarbox_relay::{FileError, Relay, RelayFile};

const SOURCE: &str = "[[source]]\nname = \"shop\"\nstore.url = \"sqlite://shop.db\"\n";
const DROP: &str = "[[route]]\nname = \"all\"\ndrop = true\n";

/// A source, a route that drops everything, and this.
fn read(rest: &str) -> Result<RelayFile, FileError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("relay.toml");
    std::fs::write(&path, format!("{SOURCE}{DROP}{rest}")).expect("writes");
    RelayFile::read(&path)
}

fn refused(rest: &str) -> String {
    read(rest).expect_err("it is wrong").to_string()
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
        (
            "[relay]\nlisten = \"here\"\n",
            "line 8: [relay]: `listen`: is no address with a port; write `127.0.0.1:9464`",
        ),
        (
            "[relay]\nlisten = \"9187\"\n",
            "`listen`: is no address with a port; write `127.0.0.1:9187` for this host only",
        ),
        ("[relay]\nlisten = \"127.0.0.1:0\"\n", "`listen`: is no address with a port"),
        (
            "[relay.console]\nlisten = \"here\"\n",
            "`console.listen`: is no address with a port; write `127.0.0.1:9465` for this host only",
        ),
        ("[relay]\nlisten = 9464\n", "`listen`: expected text in quotes, found a whole number"),
        (
            "[relay]\nlisden = \"127.0.0.1:9464\"\n",
            "expected one of `listen`, `on_unavailable`, `batch`, `unrouted`, `console`; did you mean `listen`?",
        ),
        ("[relai]\n", "unknown section `relai`; did you mean `relay`? there are [relay]"),
        (
            "[[source]]\nname = \"main\"\nstore.url = \"sqlite://a.db\"\n[source.dispatch]\nworkers = \"4\"\n",
            "line 11) has a value of another type, string; write a whole number",
        ),
    ] {
        let error = refused(rest);
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let billing = "[[source]]\nname = \"billing\"\nstore.url = \"sqlite://billing.db\"\n";
    let named = |name: &str| billing.replace("\"billing\"", &format!("\"{name}\""));
    let route = |name: &str, rest: &str| format!("[[route]]\nname = \"{name}\"\ndrop = true\n{rest}");
    let all_of_orders = "types = [\"order.*\"]\n";
    for (rest, expected) in [
        ("types = []\n".to_owned(), "line 7: [[route]] number 1: `types`: it is empty; leave it out"),
        ("sources = []\n".to_owned(), "`sources`: it is empty"),
        ("tenants = []\n".to_owned(), "`tenants`: it is empty"),
        ("aggregates = []\n".to_owned(), "`aggregates`: it is empty"),
        ("headers = {}\n".to_owned(), "`headers`: it is empty"),
        ("without_headers = []\n".to_owned(), "`without_headers`: it is empty"),
        ("with_headers = {}\n".to_owned(), "`with_headers`: it is empty"),
        (
            all_of_orders.to_owned() + &route("placed", "types = [\"order.placed\"]\n"),
            "line 8: route `placed`: it gets no event: route `all` before it takes all that it asks for",
        ),
        (named("SHOP"), "the variables of sources `shop` and `SHOP` all begin with `PILLARBOX_SHOP_`; rename one"),
        (
            named("a-b") + &named("a_b").replace("billing.db", "other.db"),
            "the variables of sources `a-b` and `a_b` all begin with `PILLARBOX_A_B_`; rename one",
        ),
        ("sources = [\"shop\"]\n".to_owned() + billing, "there is no [[route]] for source `billing`; add one"),
    ] {
        let error = refused(&rest);
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

#[test]
fn a_route_that_is_hidden_in_one_source_only_is_for_the_others() {
    let rest = "sources = [\"shop\"]\n[[source]]\nname = \"billing\"\nstore.url = \"sqlite://billing.db\"\n\
                [[route]]\nname = \"rest\"\ndrop = true\n";
    read(rest).expect("it takes what comes from billing");
}

#[tokio::test]
async fn the_file_of_a_percent_encoded_url_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a b.db");
    let path = folder.path().join("relay.toml");
    let url = format!("sqlite://{}/a%20b.db", folder.path().display());
    std::fs::write(&path, format!("[[source]]\nname = \"shop\"\nstore.url = \"{url}\"\n{DROP}")).expect("writes");
    let problem = async || {
        let relay = Relay::new(RelayFile::read(&path).expect("valid")).expect("valid");
        format!("{:?}", relay.check().await.problems)
    };
    let missing = problem().await;
    assert!(missing.contains(&format!("`{}` does not exist", file.display())), "{missing}");
    // A database without tables.
    std::fs::write(&file, "").expect("writes");
    let found = problem().await;
    assert!(!found.contains("does not exist") && found.contains("pillarbox migrate"), "{found}");
}
