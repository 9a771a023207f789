//! A relay that starts while a broker does not answer.

use serde_json::json;
use tokio::net::TcpListener;

use crate::nats;
use crate::relay::{Shop, free_port, page, routes, start, stop, wait_for_page};

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_answer_holds_up_no_other_route() {
    // Somebody takes the connection and never says a word, so that only the publisher's own limit would end the wait.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (shop, port) = (Shop::open().await, free_port());
    shop.insert("stock", 1, 10).await;
    shop.insert("order", 11, 10).await;
    let file = shop.configure(
        "partitioned",
        &format!(
            "shutdown.drain_timeout = \"1s\"\n[relay]\nlisten = \"127.0.0.1:{port}\"\n\
             [publisher.silent]\nkind = \"nats\"\nurl = \"nats://{}\"\ntimeout = \"50s\"\n\
             [[route]]\nname = \"stock\"\ntypes = [\"stock\"]\npublisher = \"silent\"\nto = \"stock\"\n\
             [[route]]\nname = \"orders\"\ndrop = true\n",
            silent.local_addr().unwrap()
        ),
    );
    let running = start(&file);
    // Less than the limit of the publisher, which is how long it would take if it were waited for.
    wait_for_page(port, "/health/ready", |status, _| status == 200).await;
    shop.wait_until("event_type = 'order' AND status = 1", 10).await;
    let (_, status) = page(port, "/status").await.unwrap();
    let [stock, orders] = &routes(&status)[..] else { panic!("{status}") };
    assert_eq!((&orders["state"], &stock["problem"]), (&json!("delivering"), &json!("it has not answered within 2s")));
    let told = |route: &serde_json::Value| (route["takes"].clone(), route["to"].clone());
    assert_eq!(told(stock), (json!("type stock"), json!("stock")));
    assert_eq!(told(orders), (json!("every event"), json!(null)));
    assert_eq!(shop.count("event_type = 'stock' AND status IN (0, 2) AND attempts = 0").await, 10);
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_without_events_goes_on_when_its_broker_is_back() {
    let mut server = nats::start().await;
    let _client = nats::client(&server, &["stock"]).await;
    server.kill().await.unwrap();
    let (shop, port) = (Shop::open().await, free_port());
    let file = shop.configure(
        "single_node",
        &format!(
            "[relay]\nlisten = \"127.0.0.1:{port}\"\n\
             [publisher.events]\nkind = \"nats\"\nurl = \"nats://relay:{}@{}\"\ntimeout = \"1s\"\n\
             [[route]]\nname = \"stock\"\npublisher = \"events\"\nto = \"stock\"\nbreaker = {{ max_pause = \"1s\" }}\n",
            nats::PASSWORD,
            server.address()
        ),
    );
    let running = start(&file);
    wait_for_page(port, "/status", |_, body| body.contains("\"state\":\"probing\"")).await;
    let (_, metrics) = page(port, "/metrics").await.unwrap();
    assert!(metrics.contains("pillarbox_route_paused{route=\"stock\",publisher=\"nats\"} 1"), "{metrics}");
    server.restart().await.unwrap();
    wait_for_page(port, "/status", |_, body| body.contains("\"state\":\"delivering\"")).await;
    let (_, metrics) = page(port, "/metrics").await.unwrap();
    assert!(metrics.contains("pillarbox_route_paused{route=\"stock\",publisher=\"nats\"} 0"), "{metrics}");
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
