//! A broker that is there and does not answer, beside one that is well.

use std::time::Duration;

use pillarbox_testkit::publishers::Server;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::nats;
use crate::relay::{Shop, free_port, start, stop, wait_for_page};

/// The time limit for the silent broker: as long as the test waits for the other one's events below.
const TIMEOUT: Duration = Duration::from_secs(60);

const ROUTES: &str = "[[route]]\nname = \"orders\"\ntypes = [\"order\"]\npublisher = \"well\"\nto = \"orders\"\n\
    [[route]]\nname = \"stock\"\ntypes = [\"stock\"]\npublisher = \"ill\"\nto = \"stock\"\n";

fn publisher(name: &str, server: &Server) -> String {
    format!(
        "[publisher.{name}]\nkind = \"nats\"\nurl = \"nats://{}\"\nusername = \"relay\"\npassword = \"{}\"\ntimeout = \"{}s\"\n",
        server.address(),
        nats::PASSWORD,
        TIMEOUT.as_secs()
    )
}

/// Writes events of a type, of a hundred keys of its own.
async fn insert(shop: &Shop, event_type: &str, count: u32) {
    shop.execute(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         INSERT INTO outbox_event (event_id, event_type, ordering_key, payload)
         SELECT printf('{event_type}-%05d', i), '{event_type}', '{event_type}-' || (i % 100), '{{}}' FROM n"
    ))
    .await;
}

/// Of its events there are more than memory holds, all of them before the other route's; and by default settings the other
/// route is through long before the silent broker is given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_broker_holds_up_its_own_route_only() {
    for mode in ["single_node", "multi_node", "partitioned"] {
        let (well, ill) = (nats::start().await, nats::start().await);
        let clients = (nats::client(&well, &["orders"]).await, nats::client(&ill, &["stock"]).await);
        let shop = Shop::open().await;
        let port = free_port();
        let relay_section = format!("[relay]\nlisten = \"127.0.0.1:{port}\"\n");
        let file = shop
            .configure(mode, &[&*relay_section, &publisher("well", &well), &publisher("ill", &ill), ROUTES].concat());
        let running = start(&file);
        wait_for_page(port, "/health/ready", |status, _| status == 200).await;

        ill.pause().unwrap();
        insert(&shop, "stock", 12_000).await;
        insert(&shop, "order", 2000).await;
        let began = Instant::now();
        shop.wait_until("event_type = 'order' AND status = 1", 2000).await;
        assert!(began.elapsed() < TIMEOUT / 2, "{mode}: it took {:?}", began.elapsed());
        assert_eq!(shop.count("event_type = 'stock' AND status != 0").await, 0, "{mode}: nothing of it is recorded");

        ill.resume().unwrap();
        shop.wait_until("status = 1", 14_000).await;
        let ended = stop(running).await;
        assert_eq!(ended.code, Some(0), "{mode}: {ended:?}");
        assert_eq!(nats::stored(&clients.0).await.len(), 2000, "{mode}");
        assert_eq!(nats::stored(&clients.1).await.len(), 12_000, "{mode}: each once");
    }
}

/// Kafka is asked on a thread that nothing can stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_relay_that_waits_for_a_silent_kafka() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let shop = Shop::open().await;
    let publisher = format!(
        "[publisher.ill]\nkind = \"kafka\"\nurl = \"kafka://{}\"\ntimeout = \"5m\"\n\
         [[route]]\nname = \"all\"\npublisher = \"ill\"\nto = \"all\"\n",
        silent.local_addr().unwrap()
    );
    let mut running = start(&shop.configure("single_node", &publisher));
    let asked = timeout(Duration::from_secs(20), silent.accept()).await;
    let _connection = asked.expect("Kafka is asked").unwrap();
    let id = running.id().unwrap().to_string();
    for pause in [Duration::ZERO, Duration::from_secs(1)] {
        // A second signal counts from half a second on.
        sleep(pause).await;
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }
    let ended = timeout(Duration::from_secs(10), running.wait()).await;
    let ended = ended.expect("it ends though a thread waits for Kafka").unwrap();
    // Where the first signal was enough, it has stopped in order.
    assert!(matches!(ended.code(), Some(0 | 130)), "{ended:?}");
}
