//! What the log says of a relay with several sources.

use serde_json::Value;

use crate::relay::{Shop, free_port, start_with, stop, wait_for_page};

/// Two databases, and one broker for both that nobody answers for.
async fn two_sources() -> (Shop, Shop, std::path::PathBuf, u16) {
    let (shop, billing, port) = (Shop::open().await, Shop::open().await, free_port());
    let file = shop.configure(
        "single_node",
        &format!(
            "[[source]]\nname = \"billing\"\nstore.url = \"{}\"\n[relay]\nlisten = \"127.0.0.1:{port}\"\n\
             [publisher.events]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:{}\"\n\
             [[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"orders\"\n",
            billing.database(),
            free_port()
        ),
    );
    (shop, billing, file, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_source_says_which_and_each_of_a_route_too() {
    let (shop, billing, file, port) = two_sources().await;
    shop.insert("order", 1, 1).await;
    billing.insert("order", 1, 1).await;
    for format in ["text", "json"] {
        let running = start_with(&file, &["--log", format]);
        wait_for_page(port, "/status", |_, body| body.matches("\"problem\"").count() == 2).await;
        let ended = stop(running).await;
        for source in ["shop", "billing"] {
            for what in ["delivers from a database", "this node delivers", "a route is paused"] {
                let says = |line: &&str| match format {
                    "json" => serde_json::from_str::<Value>(line).is_ok_and(|line| line["span"]["source"] == source),
                    _ => line.contains(&format!("{{source=\"{source}\"}}: ")),
                };
                let found: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(what)).filter(says).collect();
                let [line] = found[..] else { panic!("{what:?} of {source}: {}", ended.stderr) };
                assert!(!what.contains("route") || line.contains("all"), "{line}");
            }
        }
    }
}
