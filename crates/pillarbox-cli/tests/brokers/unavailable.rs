//! Databases and streams that are missing when a relay starts.

use serde_json::json;

use crate::nats;
use crate::relay::{Shop, free_port, relay, routes, run, start, stop, wait_for_page};

/// A second source whose database is not there yet, and routes for both; `rest` stands in `[relay]`.
fn two_sources(shop: &Shop, port: u16, rest: &str) -> std::path::PathBuf {
    let billing = shop.folder.path().join("billing.db");
    shop.configure(
        "single_node",
        &format!(
            "[[source]]\nname = \"billing\"\nmode = \"single_node\"\nstore.url = \"{}\"\n\
             [relay]\nlisten = \"127.0.0.1:{port}\"\n{rest}[[route]]\nname = \"all\"\ndrop = true\n",
            billing.display()
        ),
    )
}

async fn migrate(shop: &Shop, name: &str) {
    let database = shop.folder.path().join(name).display().to_string();
    assert_eq!(run(&["migrate", "--store", &database]).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_missing_at_the_start_is_tried_again_and_the_others_deliver() {
    let (shop, port) = (Shop::open().await, free_port());
    shop.insert("order", 1, 10).await;
    let file = two_sources(&shop, port, "");
    let running = start(&file);
    shop.wait_until("status = 1", 10).await;
    let not_ready =
        wait_for_page(port, "/health/ready", |status, body| status == 503 && body.contains("billing: cannot")).await;
    assert!(not_ready.contains("billing.db` does not exist") && not_ready.contains("shop: delivering"), "{not_ready}");
    wait_for_page(port, "/health/live", |status, _| status == 200).await;
    wait_for_page(port, "/status", |_, body| body.contains("\"started\":true") && body.contains("billing.db")).await;
    migrate(&shop, "billing.db").await;
    wait_for_page(port, "/health/ready", |status, body| status == 200 && body.contains("billing: delivering")).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("a source cannot deliver yet; it is tried again"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_during_a_partial_outage_keeps_delivering() {
    let shop = Shop::open().await;
    migrate(&shop, "billing.db").await;
    let (old_port, new_port) = (free_port(), free_port());
    let file = two_sources(&shop, old_port, "");
    let old = start(&file);
    wait_for_page(old_port, "/health/ready", |status, _| status == 200).await;
    // One database goes away, and meanwhile one process after the other is replaced.
    std::fs::rename(shop.folder.path().join("billing.db"), shop.folder.path().join("away.db")).unwrap();
    let file = two_sources(&shop, new_port, "");
    let new = start(&file);
    wait_for_page(new_port, "/status", |_, body| body.contains("standing by") || body.contains("standby")).await;
    let ended = stop(old).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    shop.insert("order", 1, 10).await;
    shop.wait_until("status = 1", 10).await;
    std::fs::rename(shop.folder.path().join("away.db"), shop.folder.path().join("billing.db")).unwrap();
    wait_for_page(new_port, "/health/ready", |status, _| status == 200).await;
    assert_eq!(stop(new).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_missing_at_the_start_pauses_its_route_alone() {
    let server = nats::start().await;
    let client = nats::client(&server, &["orders"]).await;
    let (shop, port) = (Shop::open().await, free_port());
    shop.insert("stock", 1, 5).await;
    shop.insert("order", 6, 5).await;
    let rest = |on_unavailable: &str| {
        format!(
            "[relay]\nlisten = \"127.0.0.1:{port}\"\n{on_unavailable}\
             [publisher.events]\nkind = \"nats\"\nurl = \"nats://relay:{}@{}\"\ntimeout = \"2s\"\n\
             [[route]]\nname = \"stock\"\ntypes = [\"stock\"]\npublisher = \"events\"\nto = \"stock\"\n\
             breaker = {{ max_pause = \"1s\" }}\n\
             [[route]]\nname = \"orders\"\ntypes = [\"order\"]\npublisher = \"events\"\nto = \"orders\"\n",
            nats::PASSWORD,
            server.address()
        )
    };
    let ended = relay(&shop.configure("partitioned", &rest("on_unavailable = \"exit\"\n")), &[]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("no stream takes the subject `stock`") && ended.stderr.contains("`stock` send"),
        "{ended:?}"
    );
    assert_eq!(shop.count("status = 0 AND attempts = 0").await, 10);

    let running = start(&shop.configure("partitioned", &rest("")));
    shop.wait_until("event_type = 'order' AND status = 1", 5).await;
    let status = wait_for_page(port, "/status", |_, body| body.contains("no stream takes")).await;
    let [stock, orders] = &routes(&status)[..] else { panic!("{status}") };
    assert_eq!(orders["state"], json!("delivering"), "the other route of the same broker: {status}");
    assert!(stock["problem"].as_str().unwrap().contains("no stream takes the subject `stock`"), "{status}");
    wait_for_page(port, "/health/ready", |status, _| status == 200).await;

    let mut config = client.get_stream("EVENTS").await.unwrap().get_info().await.unwrap().config;
    config.subjects.push("stock".to_owned());
    client.update_stream(config).await.unwrap();
    shop.wait_until("status = 1 AND attempts = 0", 10).await;
    assert_eq!(stop(running).await.code, Some(0));
}

#[tokio::test]
async fn with_on_unavailable_exit_a_missing_database_ends_it() {
    let (shop, port) = (Shop::open().await, free_port());
    let ended = relay(&two_sources(&shop, port, "on_unavailable = \"exit\"\n"), &[]).await;
    assert!(ended.code == Some(1) && ended.stderr.contains("billing.db` does not exist"), "{ended:?}");
    let ended = relay(&two_sources(&shop, port, "on_unavailable = \"stop\"\n"), &[]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("`pause` or `exit`"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_answer_ends_a_relay_that_is_to_exit() {
    let (shop, nobody) = (Shop::open().await, free_port());
    for (kind, scheme) in [("nats", "nats"), ("redis", "redis")] {
        let file = shop.configure(
            "single_node",
            &format!(
                "[relay]\non_unavailable = \"exit\"\n[publisher.events]\nkind = \"{kind}\"\nurl = \"{scheme}://127.0.0.1:{nobody}\"\n\
                 [[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"orders\"\n"
            ),
        );
        for args in [&[][..], &["--once", "--deadline", "20s"]] {
            let ended = relay(&file, args).await;
            assert_eq!(ended.code, Some(1), "{kind}: {ended:?}");
            assert!(ended.stderr.contains("[publisher.events]: ") && ended.stderr.contains("`all`"), "{ended:?}");
        }
    }
}
