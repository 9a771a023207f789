//! A broker that is killed and started again under load.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::sleep;

use crate::nats;
use crate::relay::{Shop, start, stop};

const EVENTS: u32 = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_keys_keep_their_order_when_the_broker_is_killed() {
    let mut server = nats::start().await;
    let client = nats::client(&server, &["orders"]).await;
    let shop = Shop::open().await;
    shop.insert("order", 1, EVENTS).await;
    let file = shop.configure(
        "partitioned",
        &format!(
            "[publisher.nats]\nkind = \"nats\"\nurl = \"nats://relay:{}@{}\"\ntimeout = \"2s\"\n\
             [[route]]\nname = \"all\"\npublisher = \"nats\"\nto = \"orders\"\n\
             breaker = {{ pause = \"100ms\", max_pause = \"500ms\" }}\n",
            nats::PASSWORD,
            server.address()
        ),
    );
    let relay = start(&file);
    for done in [1000, 4000] {
        shop.wait_until("status = 1", done).await;
        server.kill().await.unwrap();
        sleep(Duration::from_millis(700)).await;
        server.restart().await.unwrap();
    }
    shop.wait_until("status = 1", EVENTS.into()).await;
    let ended = stop(relay).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(shop.count("attempts > 0").await, 0, "the broker's absence is no event's fault");
    assert!(ended.stderr.contains("a route is paused") && ended.stderr.contains("a route goes on"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(nats::PASSWORD));

    let stored = nats::stored(&client).await;
    let mut calls: HashMap<&str, u32> = HashMap::new();
    let mut last: HashMap<&str, &str> = HashMap::new();
    for (id, key, _) in &stored {
        let is_first = *calls.entry(id).and_modify(|calls| *calls += 1).or_insert(1) == 1;
        if is_first {
            let before = last.insert(key, id);
            assert!(before.is_none_or(|before| before < id.as_str()), "{key}: {before:?} came before {id}");
        }
    }
    assert_eq!(calls.len(), EVENTS as usize, "every event arrived");
    let duplicates = stored.len() - calls.len();
    println!("{duplicates} of {EVENTS} events arrived more than once");
    // Two crashes, each with at most one event of each of ten keys on its way.
    assert!(duplicates <= 20, "{duplicates}");
}
