//! What a running relay tells over HTTP, under the names that the documentation, the manifests and the dashboard in `deploy`
//! use.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use pillarbox_relay::{Relay, RelayFile};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);

/// The answer to a GET, head and body; nobody may be there yet.
async fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// A free address of this host. It is free again when this returns, so that the relay can take it.
async fn address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    listener.local_addr().expect("has an address").to_string()
}

/// One test, since a process has one recorder of metrics.
#[tokio::test]
async fn a_relay_tells_how_it_is_by_the_documented_paths_and_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address().await;
    let path = folder.path().join("relay.toml");
    let text = format!(
        "[relay]\nlisten = \"{address}\"\n\
         [[source]]\nname = \"shop\"\nstore.url = \"sqlite://{}\"\nstore.migrate = true\n\
         [[route]]\nname = \"noise\"\ndrop = true\n",
        folder.path().join("shop.db").display()
    );
    std::fs::write(&path, text).expect("writes");
    let relay = Relay::new(RelayFile::read(&path).expect("a file")).expect("routes");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = relay.run(async {
        // Dropped or used, it is time to stop.
        let _asked = stopped.await;
    });
    let asking = async {
        // The address answers as soon as the relay has started; until then the connection waits or is refused.
        let ready = loop {
            match get(&address, "/health/ready").await {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => break answer,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        assert!(ready.lines().any(|line| line.starts_with("shop: ")), "{ready}");
        let live = get(&address, "/health/live").await.expect("answers");
        assert!(live.starts_with("HTTP/1.1 200"), "{live}");
        let status = get(&address, "/status").await.expect("answers");
        for answer in [&ready, &live, &status] {
            assert!(answer.contains("cache-control: no-store"), "no proxy keeps it: {answer}");
        }
        let (_, body) = status.split_once("\r\n\r\n").expect("a body");
        let status: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(status["sources"][0]["source"], "shop");
        assert_eq!(status["sources"][0]["problems"], serde_json::json!([]));
        assert_eq!(status["sources"][0]["busy_workers"], 0);
        assert!(status["sources"][0]["oldest_call_seconds"].is_null());
        assert_eq!(status["sources"][0]["routes"][0]["route"], "noise");
        assert_eq!(status["sources"][0]["routes"][0]["state"], "delivering");
        let metrics = get(&address, "/metrics").await.expect("answers");
        let of_route = r#"{route="noise",publisher="none"}"#;
        for name in ["confirmed_total", "failed_total", "deferred_total", "dropped_total", "paused"] {
            let line = format!("pillarbox_route_{name}{of_route} 0");
            assert!(metrics.lines().any(|found| found == line), "{line} in:\n{metrics}");
        }
        drop(stop);
    };
    let both = async { tokio::join!(running, asking) };
    let (ended, ()) = timeout(LONG, Box::pin(both)).await.expect("it starts, answers and stops");
    ended.expect("it stops in order");
}
