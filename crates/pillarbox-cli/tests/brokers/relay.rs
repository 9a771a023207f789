//! A relay as a process, and the database it delivers from.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// A folder with a database whose tables are there.
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let shop = Self { folder: tempfile::tempdir().unwrap() };
        let ended = run(&["migrate", "--store", &shop.database()]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        shop
    }

    pub(crate) fn database(&self) -> String {
        self.folder.path().join("shop.db").display().to_string()
    }

    /// Writes a configuration file: the source, and `rest`.
    pub(crate) fn configure(&self, mode: &str, rest: &str) -> PathBuf {
        let file = self.folder.path().join("relay.toml");
        let source = format!("[[source]]\nname = \"shop\"\nmode = \"{mode}\"\nstore.url = \"{}\"\n", self.database());
        std::fs::write(&file, format!("{source}{rest}")).unwrap();
        file
    }

    /// Inserts `count` events of a type, of ten keys in turn, numbered on from `first`.
    pub(crate) async fn insert(&self, event_type: &str, first: u32, count: u32) {
        let last = first + count - 1;
        self.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
             INSERT INTO outbox_event (event_id, event_type, ordering_key, payload)
             SELECT printf('{event_type}-%05d', i), '{event_type}', 'key-' || (i % 10), '{{\"n\":' || i || '}}' FROM n"
        ))
        .await;
    }

    async fn connect(&self) -> SqliteConnection {
        SqliteConnection::connect(&format!("sqlite://{}", self.database())).await.unwrap()
    }

    pub(crate) async fn execute(&self, sql: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut self.connect().await).await.unwrap();
    }

    pub(crate) async fn count(&self, condition: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM outbox_event WHERE {condition}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut self.connect().await).await.unwrap()
    }

    /// Waits until so many rows are like this, at most a minute.
    pub(crate) async fn wait_until(&self, condition: &str, rows: i64) {
        let began = Instant::now();
        loop {
            let found = self.count(condition).await;
            if found >= rows {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{found} of {rows} rows: {condition}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn pillarbox(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox"));
    command.args(args).env_remove("PILLARBOX_STORE").env_remove("RUST_LOG").kill_on_drop(true).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command to its end.
pub(crate) async fn run(args: &[&str]) -> Ended {
    ended(pillarbox(args).spawn().unwrap()).await
}

/// Starts a relay.
pub(crate) fn start(file: &Path) -> Child {
    start_with(file, &[])
}

/// Starts a relay with further options.
pub(crate) fn start_with(file: &Path, args: &[&str]) -> Child {
    pillarbox(&[&["relay", "--config", file.to_str().unwrap()], args].concat()).spawn().unwrap()
}

/// Starts a relay that logs as much as `level` asks for, into a file: more than a pipe holds.
pub(crate) fn start_logging(file: &Path, level: &str, log: &Path, args: &[&str]) -> Child {
    let log = std::fs::File::create(log).unwrap();
    let args = [&["relay", "--config", file.to_str().unwrap()], args].concat();
    pillarbox(&args).env("RUST_LOG", level).stderr(log).spawn().unwrap()
}

/// Waits until a log has so many lines with a text.
pub(crate) async fn logged(log: &Path, text: &str, lines: usize) {
    while std::fs::read_to_string(log).unwrap().matches(text).count() < lines {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a relay that ends by itself.
pub(crate) async fn relay(file: &Path, args: &[&str]) -> Ended {
    run(&[&["relay", "--config", file.to_str().unwrap()], args].concat()).await
}

/// Stops a relay in order.
pub(crate) async fn stop(relay: Child) -> Ended {
    let id = relay.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    ended(relay).await
}

async fn ended(child: Child) -> Ended {
    let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A port that was free a moment ago.
///
/// None that the system gives to those who ask for any, or a test beside this one would have got it before the relay listens.
pub(crate) fn free_port() -> u16 {
    // The testkit gives its servers those from 20,000 on.
    const PORTS: std::ops::Range<u32> = 10_000..20_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(97);
    loop {
        let place = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + place).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Asks a relay for a page: its status and its body. `None` while nobody listens.
pub(crate) async fn page(port: u16, path: &str) -> Option<(u16, String)> {
    // Whoever listens there instead may say nothing.
    tokio::time::timeout(Duration::from_secs(10), ask(port, path)).await.ok()?
}

async fn ask(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Waits until a page is as it should be.
pub(crate) async fn wait_for_page(port: u16, path: &str, is_right: impl Fn(u16, &str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let found = page(port, path).await;
        if let Some((status, body)) = found.as_ref().filter(|(status, body)| is_right(*status, body)) {
            let _ = status;
            return body.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{path}: {found:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The routes of the first source, as `/status` has them.
pub(crate) fn routes(status: &str) -> Vec<Value> {
    let status: Value = serde_json::from_str(status).unwrap();
    status["sources"][0]["routes"].as_array().unwrap().clone()
}
