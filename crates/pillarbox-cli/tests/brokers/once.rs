//! A relay with a file that delivers what is due and ends.

use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::nats;
use crate::relay::{Shop, free_port, relay, run};

/// A route to an endpoint of this machine.
fn to(port: u16) -> String {
    format!(
        "[publisher.hooks]\nkind = \"webhook\"\nallow_private = true\n\
         [[route]]\nname = \"hooks\"\npublisher = \"hooks\"\nto = \"http://127.0.0.1:{port}/\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_0_when_the_broker_has_everything() {
    let well = Endpoint::start("204 No Content").await;
    for mode in ["single_node", "multi_node", "partitioned", "ordered"] {
        let shop = Shop::open().await;
        shop.insert("order", 1, 20).await;
        let file = shop.configure(mode, &to(well.port));
        let ended = relay(&file, &["--once", "--deadline", "60s", "--json"]).await;
        assert_eq!(ended.code, Some(0), "{mode}: {ended:?}");
        let left = json!({"due": 0, "blocked": 0, "delayed": 0, "dead": 0, "paused": 0, "other_nodes": 0});
        let said: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(said, json!({"sources": [{"source": "shop", "left": left}]}));
        assert_eq!(shop.count("status = 1").await, 20, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_keeps_the_position_of_its_event_in_the_stream() {
    let server = nats::start().await;
    let client = nats::client(&server, &["orders"]).await;
    let shop = Shop::open().await;
    shop.insert("order", 1, 20).await;
    let route = format!(
        "[publisher.nats]\nkind = \"nats\"\nurl = \"nats://relay:{}@{}\"\n\
         [[route]]\nname = \"all\"\npublisher = \"nats\"\nto = \"orders\"\n",
        nats::PASSWORD,
        server.address()
    );
    let ended = relay(&shop.configure("partitioned", &route), &["--once", "--deadline", "60s"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let stored = nats::stored(&client).await;
    assert_eq!(stored.len(), 20);
    for (index, (id, _, _)) in stored.iter().enumerate() {
        let position = format!("EVENTS/{}", index + 1);
        assert_eq!(shop.count(&format!("event_id = '{id}' AND delivered_as = '{position}'")).await, 1, "{position}");
    }
    let (database, (id, _, _)) = (shop.database(), &stored[6]);
    let shown = run(&["pending", "show", id, "--store", &database, "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["state"], &shown["delivered_as"]), (&"done".into(), &"EVENTS/7".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_3_when_the_broker_takes_nothing() {
    let ill = Endpoint::start("503 Service Unavailable").await;
    for mode in ["single_node", "partitioned"] {
        let shop = Shop::open().await;
        shop.insert("order", 1, 20).await;
        let file = shop.configure(mode, &to(ill.port));
        let ended = relay(&file, &["--once", "--deadline", "2s"]).await;
        assert_eq!(ended.code, Some(3), "{mode}: {ended:?}");
        assert!(ended.stdout.starts_with("shop: left: 20 due; "), "{ended:?}");
        assert_eq!(shop.count("status = 0 AND attempts = 0 AND locked_by IS NULL").await, 20, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_fails_if_a_source_has_not_started_by_the_deadline() {
    let (shop, port) = (Shop::open().await, free_port());
    shop.insert("order", 1, 10).await;
    let billing = shop.folder.path().join("billing.db");
    let file = shop.configure(
        "single_node",
        &format!(
            "[[source]]\nname = \"billing\"\nmode = \"single_node\"\nstore.url = \"{}\"\n\
             [relay]\nlisten = \"127.0.0.1:{port}\"\n[[route]]\nname = \"all\"\ndrop = true\n",
            billing.display()
        ),
    );
    let ended = relay(&file, &["--once", "--deadline", "2s"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("source `billing` has not started before the deadline: "), "{ended:?}");
    assert_eq!(shop.count("status = 1").await, 10, "the other source is drained");
}
