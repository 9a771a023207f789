//! What a configuration file may say, and what is said about one that is wrong.

use serde_json::Value;

use crate::relay::{Shop, relay};

const PUBLISHER: &str = "[publisher.events]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:1\"\n";

/// A variable of a source that was renamed, or of a service, would be passed over in silence.
#[tokio::test]
async fn a_variable_of_no_source_is_told() {
    let shop = Shop::open().await;
    let file = shop.configure("single_node", "[[route]]\nname = \"all\"\ndrop = true\n");
    let told = async |name: &str| {
        let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_pillarbox"));
        let output = program.args(["relay", "--check", "--config"]).arg(&file).env(name, "5").output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for name in [
        "PILLARBOX_SHOPS_CLAIM__BATCH",
        "PILLARBOX_CLAIM__BATCH",
        "PILLARBOX_SHOPS_MODE",
        "PILLARBOX_MODE",
        "PILLARBOX_SHOPS_ENABLED",
        "PILLARBOX_SHOPS_STORE_URL",
        "PILLARBOX_LOG",
    ] {
        let said = told(name).await;
        assert!(said.contains(&format!("warning: the variable {name} changes nothing")), "{said}");
    }
    for name in ["PILLARBOX_SHOP_CLAIM__BATCH", "PILLARBOX_SHOPS_SERVICE_HOST", "PILLARBOX_TEST_URL", "PILLARBOXES"] {
        let said = told(name).await;
        assert!(!said.contains("changes nothing"), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_file_that_is_wrong_is_refused_with_its_line_and_the_remedy() {
    let shop = Shop::open().await;
    let route = "[[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"x\"\n";
    for (rest, expected) in [
        (
            "[publsher.x]\n".to_owned(),
            "line 5: unknown section `publsher`; did you mean `publisher`? there are [relay]",
        ),
        (PUBLISHER.replace("url", "ulr") + route, "[publisher.events]: unknown field `ulr`"),
        (PUBLISHER.replace("nats\"", "nuts\"") + route, "`kind` is \"nuts\", which does not exist; write one of nats"),
        (route.to_owned(), "route `all`: there is no [publisher.events]; add it"),
        (PUBLISHER.to_owned() + &route.replace("to =", "too ="), "unknown field `too`"),
        (PUBLISHER.to_owned() + &route.replace("\"x\"", "\"{evnt}\""), "`{evnt}`, which does not exist"),
        (PUBLISHER.to_owned() + route + &route.replace("all", "more"), "route `more`: it gets no event: route `all`"),
        (PUBLISHER.to_owned() + route + "sources = [\"shp\"]\n", "there is no source named `shp`"),
        (PUBLISHER.to_owned() + route + "drop = true\n", "it drops what it takes, and says how to send it"),
        (PUBLISHER.to_owned() + route + "breaker = { pause = \"soon\" }\n", "\"soon\" is no duration"),
        (PUBLISHER.to_owned(), "[publisher.events]: no route uses it; name it in a [[route]], or take it out"),
        (
            PUBLISHER.to_owned() + route + &PUBLISHER.replace("events", "unused"),
            "line 12: [publisher.unused]: no route uses it",
        ),
        (
            PUBLISHER.to_owned() + "password = 7654321\n" + route,
            "[publisher.events]: `password`: expected text, { env = \"NAME\" } or { file = \"PATH\" }, found a whole number",
        ),
        (PUBLISHER.to_owned() + "timeout = 5\n" + route, "`timeout`: expected text in quotes, found a whole number"),
        ("[relay]\nbatch = 0\n".to_owned() + PUBLISHER + route, "`batch` is 0; set a number from 1 to 10000"),
        ("[relay]\nunrouted = \"keep\"\n".to_owned() + PUBLISHER + route, "write `dead`, `drop`, or `park 30s`"),
        ("[relay]\nunrouted = \"park 0s\"\n".to_owned() + PUBLISHER + route, "parks for less than a second"),
        (
            PUBLISHER.to_owned() + route + "breaker = { pause = \"584542046y\" }\n",
            "setting `breaker.pause` is 18446744070849600s; set a day, `1d`, at most",
        ),
        ("dispatch.wokers = 3\n".to_owned() + PUBLISHER + route, "source `shop`: unknown key `dispatch.wokers`"),
        (PUBLISHER.replace("127.0.0.1", "broker.example") + route, "plaintext"),
        // What could never be sent is refused, before it makes the whole backlog DEAD.
        (
            PUBLISHER.to_owned() + &route.replace("\"x\"", "\"ev..x\""),
            "route `all`: setting `to` makes messages that cannot be sent: `ev..x` is no subject to publish to",
        ),
        (PUBLISHER.to_owned() + &route.replace("\"x\"", "\"ev.{event_type}.\""), "`ev.x.` is no subject"),
        (
            PUBLISHER.to_owned() + route + "with_headers = { \"a b\" = \"x\" }\n",
            "setting `with_headers` makes messages that cannot be sent: the header `a b` has a name that NATS cannot carry",
        ),
        (PUBLISHER.to_owned() + route + "with_headers = { a = \"x\\ny\" }\n", "the header `a` has a line break"),
        (PUBLISHER.to_owned() + route + "source = \"/x\"\n", "`source` is that of CloudEvents, and the format is raw"),
        (
            PUBLISHER.to_owned() + route + "format = \"cloudevents-binary\"\nsource = \"a b\"\n",
            "setting `source` is \"a b\", which is no reference of a URI",
        ),
        (PUBLISHER.to_owned() + route + "types = [\"\"]\n", "`types` holds an empty text"),
    ] {
        let ended = relay(&shop.configure("single_node", &rest), &[]).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
        assert!(!ended.stderr.contains("7654321"), "{}", ended.stderr);
    }
    let file = shop.configure("single_node", &(PUBLISHER.to_owned() + route));
    let ended = relay(&file, &["--store", "shop.db"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("`--store` does not apply beside --config"), "{ended:?}");
    let typo = shop.folder.path().join("typo.db");
    let text = std::fs::read_to_string(&file).unwrap().replace("shop.db", "typo.db");
    std::fs::write(&file, text).unwrap();
    for args in [&["--check"][..], &["--dry-run"]] {
        let ended = relay(&file, args).await;
        assert!(ended.code == Some(1) && format!("{ended:?}").contains("typo.db` does not exist"), "{ended:?}");
        assert!(!typo.exists(), "a typing error leaves no empty database behind");
    }
    let file = shop.configure("single_node", &(PUBLISHER.to_owned() + route));
    let text = std::fs::read_to_string(&file).unwrap();
    let url = text.lines().find(|line| line.starts_with("store.url")).expect("a source has a URL");
    for (instead, expected) in [
        ("", "source `shop`: setting `store.url` is missing; set it or `store.url_file`"),
        (
            "store.url_file = \"postgres://u:hunter2@h/x\"",
            "is a URL, where a file is to be named; put the URL into a file",
        ),
        ("store.url_file = \"/no/such/file\"", "cannot read `store.url_file` /no/such/file"),
        ("store.url = \"postgres://u:pa@hunter2@h/x\"", "has more than one `@`; write it as %40"),
    ] {
        std::fs::write(&file, text.replace(url, instead)).unwrap();
        for args in [&[][..], &["--check"]] {
            let ended = relay(&file, args).await;
            let said = format!("{ended:?}");
            assert!(ended.code == Some(2) && said.contains(expected) && !said.contains("hunter2"), "{said}");
        }
    }
    let ended = relay(&shop.folder.path().join("missing.toml"), &[]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("missing.toml"), "{ended:?}");
}

#[tokio::test]
async fn a_dry_run_shows_where_events_would_go_and_delivers_nothing() {
    let shop = Shop::open().await;
    shop.insert("order", 1, 30).await;
    shop.insert("stock", 31, 20).await;
    shop.insert("debug", 51, 10).await;
    shop.insert("other", 61, 5).await;
    let routes = "[[route]]\nname = \"noise\"\ntypes = [\"debug\"]\ndrop = true\n\
        [[route]]\nname = \"orders\"\ntypes = [\"order\"]\npublisher = \"events\"\nto = \"shop.{event_type}\"\n\
        [[route]]\nname = \"stock\"\ntypes = [\"stock\"]\npublisher = \"events\"\nto = \"{tenant_id}\"\n";
    let file = shop.configure("single_node", &(PUBLISHER.to_owned() + routes));
    let ended = relay(&file, &["--dry-run", "--json"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let preview: Value = serde_json::from_str(&ended.stdout).unwrap();
    let lines: Vec<_> = preview["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            (text("event_type"), line["events"].as_u64().unwrap(), text("route"), text("target"))
        })
        .collect();
    let line =
        |event_type: &str, events, route: &str, target: &str| (event_type.into(), events, route.into(), target.into());
    assert_eq!(lines[0], line("order", 30, "orders", "shop.order"));
    assert!(lines[1].3.contains("the event has no tenant_id"), "{:?}", lines[1]);
    assert_eq!(lines[2..], [line("debug", 10, "noise", "dropped"), line("other", 5, "-", "no route takes it")]);
    let ended = relay(&file, &["--dry-run"]).await;
    assert!(
        ended.stdout.contains("65 events that are due now") && ended.stdout.contains("shop.order"),
        "{}",
        ended.stdout
    );
    assert_eq!(shop.count("status = 0").await, 65);
}
