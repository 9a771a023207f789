//! The databases and brokers of a relay's file are examined together.

use serde_json::Value;

use crate::nats;
use crate::relay::{Shop, run};

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
        [("no-node", "source shop"), ("broker-refuses", &broker)],
        "no stream takes it: {report}"
    );
    nats::client(&server, &["events.>"]).await;
    let report = examine().await;
    assert_eq!(codes(&report), [("no-node", "source shop"), ("nats-stream-one-replica", &broker)], "{report}");
    server.kill().await.unwrap();
    let report = examine().await;
    assert_eq!(codes(&report), [("no-node", "source shop"), ("broker-refuses", &broker)], "it is away: {report}");
}

#[tokio::test]
async fn a_file_that_is_wrong_is_an_error_and_no_finding() {
    let shop = Shop::open().await;
    let file = shop.configure("single_node", "[publsher.x]\n").display().to_string();
    let ended = run(&["doctor", "--config", &file]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("unknown section"), "{ended:?}");
    let ended = run(&["doctor", "--config", &file, "--store", &shop.database()]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("--store"), "{ended:?}");
}
