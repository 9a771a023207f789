//! How a relay ends: told to, at once, or because nobody reads any more. No event is lost by any of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::{connect, count, end_of, pillarbox, run_async, send, wait_until, with_postgres};

const PENDING: &str = "SELECT count(*) FROM outbox_event WHERE status = 0 AND locked_by IS NULL AND attempts = 0";
const DONE: &str = "SELECT count(*) FROM outbox_event WHERE status = 1";

/// More lines than a pipe holds.
const INSERT: &str = "INSERT INTO outbox_event (event_id, event_type, payload)
                      SELECT n, 't', to_json(repeat('x', 1000)) FROM generate_series(1, 5000) n";

/// A database with a backlog, to relay from.
async fn with_backlog<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(String) -> F + Send + 'static) {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        client.batch_execute(INSERT).await.unwrap();
        test(url).await;
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_relay_and_loses_nothing() {
    for mode in ["single_node", "multi_node", "ordered"] {
        with_backlog(move |url| async move {
            let (client, _connection) = connect(&url).await;
            let mut relay = pillarbox(&["relay", "--store", &url, "--mode", mode]).spawn().unwrap();
            let mut reader = BufReader::new(relay.stdout.take().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            assert!(first.ends_with("}\n"), "{first}");
            drop(reader);
            let ended = end_of(relay).await;
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains("the reader of stdout went away"), "{ended:?}");

            let (done, pending) = (count(&client, DONE).await, count(&client, PENDING).await);
            assert!(done < 5000, "it did not go on");
            assert_eq!(done + pending, 5000, "what was not written is as it was, and free");
            let rest = pending.to_string();
            let ended = run_async(&["relay", "--store", &url, "--mode", mode, "--limit", &rest]).await;
            assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), usize::try_from(pending).unwrap()));
            assert_eq!(count(&client, DONE).await, 5000);
        })
        .await;
    }
}

#[tokio::test]
async fn a_second_signal_ends_a_relay_that_cannot_finish_its_line() {
    with_backlog(|url| async move {
        let (client, _connection) = connect(&url).await;
        // Nobody reads, so that the relay stands in the middle of a write.
        let relay = pillarbox(&["relay", "--store", &url]).spawn().unwrap();
        wait_until(&client, "SELECT count(*) > 0 FROM outbox_event WHERE status = 1").await;
        let mut before = -1;
        while std::mem::replace(&mut before, count(&client, DONE).await) != before {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(before < 5000, "the pipe is full");
        send("-TERM", &relay);
        // Far enough apart to be two.
        tokio::time::sleep(Duration::from_millis(700)).await;
        send("-TERM", &relay);
        let ended = end_of(relay).await;
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(ended.stderr.contains("stopped at once"), "{ended:?}");
        let done = usize::try_from(count(&client, DONE).await).unwrap();
        let flushed = ended.stdout.matches('\n').count();
        assert!(done <= flushed, "what was not flushed is not settled: {done} are, of {flushed} whole lines");
    })
    .await;
}

#[tokio::test]
async fn signals_that_come_together_end_it_in_order() {
    with_backlog(|url| async move {
        let (client, _connection) = connect(&url).await;
        let folder = tempfile::tempdir().unwrap();
        let to = format!("file:{}", folder.path().join("events.jsonl").display());
        // The lines under way take longer to settle than the signals to come.
        let relay = pillarbox(&["relay", "--store", &url, "--to", &to, "--delay", "1s"]).spawn().unwrap();
        wait_until(&client, "SELECT count(*) > 0 FROM outbox_event WHERE status = 1").await;
        for signal in ["-TERM", "-TERM", "-INT"] {
            send(signal, &relay);
            // As `timeout` and the kernel deliver them: apart, so that they are not merged into one.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let ended = end_of(relay).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("the outbox has stopped") && !ended.stderr.contains(" at once"), "{ended:?}");
        let (done, pending) = (count(&client, DONE).await, count(&client, PENDING).await);
        assert_eq!(done + pending, 5000, "nothing is held any more");
        assert_eq!(count(&client, "SELECT count(*) FROM outbox_node").await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_signal_ends_it_in_order_and_frees_what_it_held() {
    for (mode, signal) in [("single_node", "-INT"), ("multi_node", "-TERM"), ("single_node", "-HUP")] {
        with_backlog(move |url| async move {
            let (client, _connection) = connect(&url).await;
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("events.jsonl");
            let to = format!("file:{}", file.display());
            let args = ["relay", "--store", &url, "--mode", mode, "--to", &to, "--delay", "200ms"];
            let relay = pillarbox(&args).spawn().unwrap();
            wait_until(&client, "SELECT count(*) > 100 FROM outbox_event WHERE status = 1").await;
            send(signal, &relay);
            let ended = end_of(relay).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let (done, pending) = (count(&client, DONE).await, count(&client, PENDING).await);
            assert!(pending > 0, "it did not wait for the backlog");
            assert_eq!(done + pending, 5000, "nothing is held any more");
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            assert_eq!(i64::try_from(lines).unwrap(), done, "what was written is settled, and nothing else");
            assert!(ended.stdout.contains(&format!("lines were appended to {}", file.display())), "{ended:?}");
            assert_eq!(count(&client, "SELECT count(*) FROM outbox_node").await, 0);
        })
        .await;
    }
}

#[tokio::test]
async fn a_disk_that_is_full_ends_it_and_loses_nothing() {
    with_backlog(|url| async move {
        let (client, _connection) = connect(&url).await;
        let relay = pillarbox(&["relay", "--store", &url, "--to", "file:/dev/full"]).spawn().unwrap();
        let ended = end_of(relay).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("could not write to /dev/full; lines written: 0"), "{ended:?}");
        assert_eq!(count(&client, PENDING).await, 5000);
    })
    .await;
}

#[tokio::test]
async fn health_status_and_metrics_are_served_while_it_runs() {
    with_backlog(|url| async move {
        let (client, _connection) = connect(&url).await;
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = pillarbox(&["relay", "--store", &url, "--metrics", &address.to_string()]);
        let relay = command.stdout(Stdio::null()).spawn().unwrap();
        wait_until(&client, "SELECT count(*) = 5000 FROM outbox_event WHERE status = 1").await;
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
                .unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            page
        };
        for (path, expected) in [
            ("/metrics", "pillarbox_"),
            ("/health/live", "outbox_event: delivering"),
            ("/health/ready", "outbox_event: delivering"),
            ("/status", "\"started\":true"),
        ] {
            let page = ask(path);
            assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains(expected), "{path}: {page}");
        }
        for path in ["/", "/metrics/x", "/health", "/healthz"] {
            assert!(ask(path).starts_with("HTTP/1.1 404"), "{path} is not there");
        }
        // The table goes away: the relay is alive, and not ready.
        client.batch_execute("ALTER TABLE outbox_event RENAME TO away").await.unwrap();
        let began = Instant::now();
        loop {
            let page = ask("/health/ready");
            if page.starts_with("HTTP/1.1 503") {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{page}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(ask("/health/live").starts_with("HTTP/1.1 200 OK"));
        client.batch_execute("ALTER TABLE away RENAME TO outbox_event").await.unwrap();
        send("-TERM", &relay);
        assert_eq!(end_of(relay).await.code, Some(0));
    })
    .await;
}
