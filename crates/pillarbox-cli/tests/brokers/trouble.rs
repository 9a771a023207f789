//! One destination in trouble, another that is well.

use pillarbox_testkit::publishers::Server;
use serde_json::json;

use crate::nats;
use crate::relay::{Shop, free_port, page, relay, routes, start, stop, wait_for_page};

fn publishers(well: &Server, ill: &Server) -> String {
    let publisher = |name: &str, server: &Server| {
        format!(
            "[publisher.{name}]\nkind = \"nats\"\nurl = \"nats://{}\"\nusername = \"relay\"\npassword = \"{}\"\ntimeout = \"1s\"\n",
            server.address(),
            nats::PASSWORD
        )
    };
    publisher("well", well) + &publisher("ill", ill)
}

/// A route of `/status` that is paused.
const PAUSED: &str = "\"state\":\"paused\"";

const ROUTES: &str = "[[route]]\nname = \"orders\"\ntypes = [\"order\"]\npublisher = \"well\"\nto = \"orders\"\n\
    [[route]]\nname = \"stock\"\ntypes = [\"stock\"]\npublisher = \"ill\"\nto = \"stock\"\n\
    breaker = { pause = \"1s\", max_pause = \"1s\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_route_whose_broker_is_away_is_paused_alone_and_goes_on_when_it_is_back() {
    let (well, mut ill) = (nats::start().await, nats::start().await);
    let clients = (nats::client(&well, &["orders"]).await, nats::client(&ill, &["stock"]).await);
    let shop = Shop::open().await;
    let port = free_port();
    let relay_section = format!("[relay]\nlisten = \"127.0.0.1:{port}\"\n");
    let file = shop.configure("partitioned", &(relay_section + &publishers(&well, &ill) + ROUTES));
    let running = start(&file);
    wait_for_page(port, "/health/ready", |status, _| status == 200).await;
    ill.kill().await.unwrap();

    // More of those that cannot go than memory holds, all of them before the others.
    shop.insert("stock", 1, 20_000).await;
    shop.insert("order", 20_001, 500).await;
    shop.wait_until("event_type = 'order' AND status = 1", 500).await;
    let status = wait_for_page(port, "/status", |_, body| body.contains(PAUSED)).await;
    let routes_now = routes(&status);
    assert_eq!(
        (&routes_now[0]["state"], &routes_now[1]["state"]),
        (&json!("delivering"), &json!("paused")),
        "{status}"
    );
    assert!(routes_now[1]["problem"].as_str().is_some_and(|problem| !problem.is_empty()));
    assert_eq!(page(port, "/health/live").await.map(|(status, _)| status), Some(200));
    assert_eq!(page(port, "/health/ready").await.map(|(status, _)| status), Some(200), "the relay itself is well");
    let metrics = page(port, "/metrics").await.unwrap().1;
    assert!(metrics.contains("pillarbox_route_paused{route=\"stock\",publisher=\"nats\"} 1"), "{metrics}");
    // Even those that were in memory when the route was paused: nothing of it is recorded.
    let touched = "event_type = 'stock' AND (status != 0 OR attempts > 0 OR last_error IS NOT NULL)";
    assert_eq!(shop.count(touched).await, 0);

    ill.restart().await.unwrap();
    shop.wait_until("status = 1", 20_500).await;
    wait_for_page(port, "/status", |_, body| !body.contains(PAUSED)).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(nats::stored(&clients.0).await.len(), 500);
    let stock = nats::stored(&clients.1).await;
    let distinct: std::collections::HashSet<_> = stock.iter().map(|(id, ..)| id).collect();
    assert_eq!((stock.len(), distinct.len()), (20_000, 20_000), "each once");
    assert_eq!(shop.count("attempts > 0").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_refusals_are_reported_at_the_start_if_they_are_to_end_it() {
    let server = nats::start().await;
    let _client = nats::client(&server, &["orders"]).await;
    let shop = Shop::open().await;
    shop.insert("order", 1, 3).await;
    let publisher = |password: &str| {
        format!(
            "[relay]\non_unavailable = \"exit\"\n\
             [publisher.events]\nkind = \"nats\"\nurl = \"nats://relay:{password}@{}\"\ntimeout = \"2s\"\n",
            server.address()
        )
    };
    let route = |to: &str| format!("[[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"{to}\"\n");
    for (rest, expected) in [
        (publisher(nats::PASSWORD) + &route("nobody.takes.this"), "nobody.takes.this"),
        (publisher("wr0ng-password") + &route("orders"), "refuses the user or the password"),
    ] {
        let file = shop.configure("single_node", &rest);
        for args in [&[][..], &["--check"]] {
            let ended = relay(&file, args).await;
            assert_eq!(ended.code, Some(1), "{ended:?}");
            let said = ended.stdout + &ended.stderr;
            assert!(
                said.contains(expected) && said.contains("[publisher.events]: nats at ") && said.contains("`all`"),
                "{said}"
            );
            assert!(!said.contains("wr0ng") && !said.contains(nats::PASSWORD), "{said}");
        }
    }
    let file = shop.configure("single_node", &(publisher(nats::PASSWORD) + &route("orders")));
    let ended = relay(&file, &["--check"]).await;
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "everything is as the file says"), "{ended:?}");
    let other = "INSERT INTO outbox_node (node_id, mode, started_at, expires_at) VALUES ('shop-1', 'multi_node', 1, 9000000000000000)";
    shop.execute(other).await;
    let ended = relay(&file, &["--check"]).await;
    let said = ended.stdout + &ended.stderr;
    assert!(ended.code == Some(1) && said.contains("shop-1") && said.contains("multi_node"), "{said}");
    shop.execute("DELETE FROM outbox_node").await;
    for (to, expected) in [
        ("{event_type}", "route `all`: each `{event_type}`; there is a place for `…`"),
        ("orders.{event_type}", "no stream takes the subject `orders.>`"),
    ] {
        let file = shop.configure("single_node", &(publisher(nats::PASSWORD) + &route(to)));
        let ended = relay(&file, &["--check"]).await;
        assert!(ended.stdout.contains(expected) && !ended.stdout.contains("everything is"), "{ended:?}");
        assert_eq!(ended.code, Some(i32::from(expected.starts_with("no"))), "{ended:?}");
    }
    assert_eq!(shop.count("status = 0 AND attempts = 0").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_waits_for_its_broker_is_alive_and_not_ready_and_can_be_stopped() {
    let shop = Shop::open().await;
    let (port, nobody) = (free_port(), free_port());
    let file = shop.configure(
        "single_node",
        &format!(
            "[relay]\nlisten = \"127.0.0.1:{port}\"\n[publisher.events]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:{nobody}\"\n\
             [[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"orders\"\n"
        ),
    );
    let running = start(&file);
    wait_for_page(port, "/health/live", |status, body| status == 200 && body == "starting\n").await;
    assert_eq!(page(port, "/health/ready").await, Some((503, "starting\n".to_owned())));
    assert!(page(port, "/status").await.is_some_and(|(_, body)| body.contains("\"started\":false")));
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
