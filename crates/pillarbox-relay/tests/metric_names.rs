//! Every metric that the documentation, the alerts and the dashboard name is at the endpoint, under exactly that name. In a process of
//! its own, which has one recorder.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::handlers::{Events, on_batch, on_type};
use pillarbox_engine::maintain::{PauseNote, Pauses};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_relay::{Relay, RelayFile};
use pillarbox_routes::{Route, Routes};
use pillarbox_testkit::publishers::MemoryPublisher;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const PAGE: &str = include_str!("../../../docs/metrics.md");
const ALERTS: &str = include_str!("../../../deploy/prometheus/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana/pillarbox.json");
const BUCKETS: &str = include_str!("../../pillarbox-engine/src/observe/buckets.rs");

const LONG: Duration = Duration::from_secs(60);

/// What the endpoint answers, once it does.
async fn scrape(address: &str) -> String {
    loop {
        let Ok(mut stream) = TcpStream::connect(address).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("asks");
        let mut page = String::new();
        stream.read_to_string(&mut page).await.expect("answers");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        return page;
    }
}

/// The names in the tables of the documentation, as Prometheus has them.
fn documented() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in PAGE.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let kinds = ["counter", "gauge", "histogram"];
        let (name, kind, unit) = match cells[..] {
            [_, name, kind, unit, ..] if kinds.contains(&kind) => (name, kind, unit),
            [_, kind, name, unit, ..] if kinds.contains(&kind) => (name, kind, unit),
            _ => continue,
        };
        let unit = if unit == "seconds" { "_seconds" } else { "" };
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            _ => &["_bucket", "_sum", "_count"],
        };
        names.extend(ends.iter().map(|end| format!("pillarbox_{}{unit}{end}", name.replace('.', "_"))));
    }
    names
}

/// The names that a text uses.
fn used(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("pillarbox_"));
    words.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_name_in_documentation_alerts_and_dashboard_is_at_the_endpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        listener.local_addr().expect("has an address").to_string()
    };
    let path = folder.path().join("relay.toml");
    let text = format!(
        "[relay]\nlisten = \"{address}\"\n[[source]]\nname = \"shop\"\nstore.url = \"sqlite://{}\"\nstore.migrate = true\n\
         [[route]]\nname = \"noise\"\ndrop = true\n",
        folder.path().join("shop.db").display()
    );
    std::fs::write(&path, text).expect("writes");
    let relay = Relay::new(RelayFile::read(&path).expect("a file")).expect("routes");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = relay.run(async { drop(stopped.await) });
    let asking = async {
        // The relay's recorder is there as soon as it answers.
        scrape(&address).await;
        let store = MemoryStore::new();
        Pauses::of(&store).pause_type("order.paused", &PauseNote::new()).await.expect("pauses");
        let route = Route::to(Arc::new(MemoryPublisher::new()), "orders");
        let forwarder = Routes::new().route(route).build().expect("valid");
        let outbox = Outbox::single_node(store.clone())
            .handler(on_batch(Events::Others, 10, forwarder).for_any_name())
            .handler(on_type("order.limited", async |_: Delivery| {}).concurrency(4))
            .start()
            .await;
        let outbox = outbox.expect("starts");
        let mut tx = store.begin();
        let written =
            outbox.write(&mut tx, Envelope::json("order.placed", "{}").expect("valid")).await.expect("writes");
        tx.commit();
        outbox.notify_committed(written);
        while outbox.stats().done == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        while !scrape(&address).await.contains("pillarbox_paused") {
            sleep(Duration::from_millis(1)).await;
        }
        outbox.shutdown().await;
        let page = scrape(&address).await;
        let samples = page.lines().filter(|line| line.starts_with("pillarbox_"));
        let shown: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
        let documented = documented();
        assert!(documented.len() > 60, "{documented:?}");
        for (place, names) in [
            ("the tables of docs/metrics.md", &documented),
            ("docs/metrics.md", &used(PAGE)),
            ("deploy/prometheus/alerts.yaml", &used(ALERTS)),
            ("deploy/grafana/pillarbox.json", &used(DASHBOARD)),
        ] {
            let missing: Vec<_> = names.iter().filter(|name| !shown.contains(name.as_str())).collect();
            assert!(missing.is_empty(), "{place} names what is not there: {missing:?}\n{page}");
        }
        // Rows are not counted in seconds.
        for name in documented.iter().filter(|name| name.ends_with("_bucket") && !name.contains("_seconds")) {
            assert!(page.contains("le=\"10000\"") && !page.contains(&format!("{name}{{le=\"0.00005\"")), "{name}");
            let bound = page.lines().find(|line| line.starts_with(&**name)).expect("it has buckets");
            assert!(bound.contains("le=\"0\""), "{bound}");
        }
        drop(stop);
    };
    let both = async { tokio::join!(running, asking) };
    let (ended, ()) = timeout(LONG, Box::pin(both)).await.expect("it starts, answers and stops");
    ended.expect("it stops in order");
}

#[test]
fn the_copies_of_alerts_and_of_the_recorder_are_one() {
    let block = |language: &str| {
        let (_, rest) = PAGE.split_once(&format!("```{language}\n")).expect("there is one");
        rest.split_once("```").expect("it ends").0
    };
    let (_, alerts) = ALERTS.split_once('\n').expect("a first line");
    assert_eq!(block("yaml"), alerts, "docs/metrics.md and deploy/prometheus/alerts.yaml");
    let tested: String = BUCKETS
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .fold(String::new(), |text, line| text + line.strip_prefix(' ').unwrap_or(line) + "\n");
    let recorder = block("rust").replace("pillarbox::observe", "pillarbox_engine::observe");
    assert!(tested.contains(&recorder), "docs/metrics.md has another recorder than observe/buckets.rs:\n{tested}");
}
