//! The databases and brokers of a relay's file are examined together.

use serde_json::Value;

use crate::nats;
use crate::relay::{Shop, free_port, run, start, stop, wait_for_page};

fn codes(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["code"].as_str().unwrap(), finding["subject"].as_str().unwrap())).collect()
}

fn routes(address: &str) -> String {
    format!(
        "[publisher.events]\nkind = \"nats\"\nurl = \"nats://{address}\"\nusername = \"relay\"\npassword = \"{}\"\ntimeout = \"3s\"\n\
         [[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"events.all\"\n",
        nats::PASSWORD
    )
}

#[tokio::test]
async fn a_file_is_examined_with_its_database_and_its_broker() {
    let (shop, mut server) = (Shop::open().await, nats::start().await);
    let address = server.address().to_string();
    let broker = format!("broker nats://{address}");
    let file = shop.configure("single_node", &routes(&address)).display().to_string();
    let examine = async || {
        let ended = run(&["doctor", "--config", &file, "--json"]).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(!ended.stdout.contains(nats::PASSWORD), "{ended:?}");
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let report = examine().await;
    assert_eq!(
        codes(&report),
        [("broker-refuses", &*broker), ("no-node", "source shop")],
        "no stream takes it: {report}"
    );
    nats::client(&server, &["events.>"]).await;
    let report = examine().await;
    assert_eq!(codes(&report), [("no-node", "source shop"), ("nats-stream-one-replica", &broker)], "{report}");
    server.kill().await.unwrap();
    let report = examine().await;
    assert_eq!(codes(&report), [("broker-refuses", &*broker), ("no-node", "source shop")], "it is away: {report}");
}

fn evidence<'a>(report: &'a Value, code: &str) -> &'a str {
    let finding = report["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code);
    finding.unwrap_or_else(|| panic!("no {code}: {report}"))["evidence"].as_str().unwrap()
}

/// The relay itself tells what it waits for: a broker, and a database that it cannot deliver from.
#[tokio::test]
async fn a_relay_is_asked_what_it_waits_for() {
    let (shop, mut server, port) = (Shop::open().await, nats::start().await, free_port());
    nats::client(&server, &["events.>"]).await;
    let missing = shop.folder.path().join("missing.db").display().to_string();
    let rest = format!(
        "[relay]\nlisten = \"127.0.0.1:{port}\"\n[[source]]\nname = \"gone\"\nmode = \"single_node\"\nstore.url = \"{missing}\"\n{}",
        routes(&server.address().to_string())
    );
    let path = shop.configure("single_node", &rest);
    let file = path.display().to_string();
    let examine = async || {
        let ended = run(&["doctor", "--config", &file, "--json", "--ignore", "nats-stream-one-replica"]).await;
        assert!(!ended.stdout.contains(nats::PASSWORD), "{ended:?}");
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let report = examine().await;
    assert_eq!(evidence(&report, "relay-not-running"), format!("nobody listens at 127.0.0.1:{port} on this host"));

    let relay = start(&path);
    wait_for_page(port, "/status", |_, body| body.contains("delivering as") && body.contains("missing.db")).await;
    let report = examine().await;
    assert!(evidence(&report, "relay-unready").starts_with("source gone: could not"), "{report}");
    assert!(codes(&report).iter().all(|(code, _)| !code.starts_with("route-")), "{report}");
    server.kill().await.unwrap();
    shop.insert("order", 1, 1).await;
    wait_for_page(port, "/status", |_, body| body.contains("\"state\":\"p")).await;
    let report = examine().await;
    assert!(evidence(&report, "route-paused").starts_with("source shop, route all: "), "{report}");
    stop(relay).await;
}

#[tokio::test]
async fn a_file_that_is_wrong_is_a_finding_and_one_that_cannot_be_read_an_error() {
    let shop = Shop::open().await;
    let file = shop.configure("single_node", "[publsher.x]\n").display().to_string();
    let ended = run(&["doctor", "--config", &file, "--json"]).await;
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let subject = format!("file {file}");
    assert_eq!((ended.code, &codes(&report)[..]), (Some(1), &[("configuration-unusable", &*subject)][..]), "{report}");
    assert!(evidence(&report, "configuration-unusable").contains("unknown section"), "{report}");
    let ended = run(&["doctor", "--config", "/nowhere/relay.toml"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot read /nowhere/relay.toml"), "{ended:?}");
    let ended = run(&["doctor", "--config", &file, "--store", &shop.database()]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("--store"), "{ended:?}");
}
