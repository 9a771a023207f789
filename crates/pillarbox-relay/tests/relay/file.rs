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
fn files_that_cannot_work_are_refused() {
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
        (
            named("stock") + "[source.dispatch]\nunroutable = \"dead\"\n",
            "`dispatch.unroutable` means nothing to a relay, which takes every event; set `unrouted` in [relay]",
        ),
        ("sources = [\"shop\"]\n".to_owned() + billing, "there is no [[route]] for source `billing`; add one"),
    ] {
        let error = refused(&rest);
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

/// Somebody who wrote the file in one go learns from one run all that has to be mended.
#[test]
fn all_mistakes_of_a_file_are_told_in_its_order() {
    let error = refused(
        "raet = 5\ntypes = \"order.*\"\n[route.breaker]\npose = \"1s\"\n\
         [[route]]\nname = \"to\"\npublisher = \"nobody\"\nto = \"x\"\nsources = [\"shp\"]\n\
         [[source]]\nname = \"stock\"\nstore.url = \"sqlite://stock.db\"\nclaim.bacth = 1\n[source.retry]\nmax_retries = 3\n\
         [relay]\nbatch = 0\nlisden = 1\n[relai]\n",
    );
    let lines: Vec<&str> = error.lines().collect();
    for (line, expected) in lines.iter().zip([
        "line 7: [[route]] number 1: unknown field `raet`",
        "line 8: [[route]] number 1: `types`: expected a list",
        "line 10: [[route]] number 1: `breaker`: unknown field `pose`",
        "unknown key `claim.bacth`",
        "did you mean `retry.max_attempts`? it counts the first call too: retries + 1",
        "line 24: [relay]: unknown field `lisden`",
        "line 25: unknown section `relai`",
    ]) {
        assert!(line.contains(expected), "{expected}\n{error}");
    }
    assert_eq!(lines.len(), 7, "{error}");
    let error = refused("[[route]]\nname = \"to\"\npublisher = \"nobody\"\nto = \"x\"\nsources = [\"shp\"]\n");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].contains("line 9: route `to`: there is no [publisher.nobody]"), "{error}");
    assert!(lines[1].contains("line 11: route `to`: there is no source named `shp`"), "{error}");
}

#[test]
fn a_key_under_a_wrong_name_is_not_missing_as_well() {
    let error = refused("[[route]]\nnaem = \"to\"\ndrop = true\n");
    assert!(error.ends_with("did you mean `name`?") && error.lines().count() == 1, "{error}");
    let error = refused("[[route]]\ndrop = true\n");
    assert!(error.contains("line 7: [[route]] number 2: `name` is missing; set it"), "{error}");
}

#[test]
fn many_mistakes_are_bounded() {
    let rest: String = (0..30).map(|number| format!("key{number} = 1\n")).collect();
    let error = read(&rest).expect_err("it is wrong");
    assert_eq!(error.lines().len(), FileError::SHOWN + 1);
    assert_eq!(error.to_string().lines().last(), Some("and 10 more"));
}

/// The line is that of the key, whatever finds its value to be wrong.
#[test]
fn a_mistake_is_told_with_the_line_of_its_key() {
    let route = |rest: &str| format!("[[route]]\nname = \"to\"\n{rest}");
    for (rest, expected) in [
        ("[relay]\nunrouted = \"drop\"\nbatch = 0\n".to_owned(), "line 9: [relay]: `batch` is 0"),
        (
            "[relay]\nbatch = 9\n[relay.console]\nlisten = \"0.0.0.0:9465\"\n".to_owned(),
            "line 9: [relay.console]: the console would be open",
        ),
        (SOURCE.to_owned(), "line 8: two sources are named `shop`; rename one"),
        (SOURCE.replace("shop", "SHOP"), "line 8: the variables of sources `shop` and `SHOP` all begin"),
        (SOURCE.replace("shop", "a b"), "line 8: [[source]]: `name` is not made of letters"),
        (
            SOURCE.replace("\"shop\"", "\"other\"") + "enabled = false\n",
            "line 10: source `other`: delivers nothing: it is switched off",
        ),
        ("[[source]]\nname = \"other\"\n".to_owned(), "line 7: source `other`: setting `store.url` is missing"),
        (route("sources = [\"shop\"]\ndrop = true\nto = \"x\"\n"), "line 10: route `to`: it drops what it takes"),
        (
            route("drop = true\ntypes = [\"\"]\n").replace("drop = true", "to = \"x\""),
            "line 10: route `to`: `types` holds",
        ),
        ("[publisher.p]\nurl = \"x\"\nkind = \"nuts\"\n".to_owned(), "line 9: [publisher.p]: `kind` is \"nuts\""),
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
