//! The database goes down under load and comes back: nothing is lost, nothing is handled twice, no attempt is burned.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, Pool, RecyclingMethod};
use pillarbox_core::run::Outbox;
use pillarbox_core::store::{Store as _, Upkeep as _};
use pillarbox_postgres::PostgresOptions;
use pillarbox_testkit::Recorder;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_postgres::NoTls;

/// A PostgreSQL server of the test's own, which it may stop as it likes.
struct Server {
    bin: PathBuf,
    port: u16,
    directory: TempDir,
}

/// The server's programs: the named ones, else the newest that Debian's packages installed.
fn programs() -> PathBuf {
    if let Some(bin) = std::env::var_os("PILLARBOX_TEST_POSTGRES_BIN") {
        return bin.into();
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).max();
    newest.expect("this test needs PostgreSQL's programs: run ./scripts/test, or set PILLARBOX_TEST_POSTGRES_BIN")
}

impl Server {
    async fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("pillarbox-restart").tempdir().expect("a directory");
        let port = TcpListener::bind("127.0.0.1:0").await.expect("binds").local_addr().expect("an address").port();
        let server = Self { bin: programs(), port, directory };
        if is_root() {
            server.run("chown", &["postgres", server.path()]).await;
        }
        server.tool("initdb", &["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]).await;
        let settings = format!("port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n");
        let file = server.data().join("postgresql.auto.conf");
        std::fs::write(file, settings).expect("writes the settings");
        server.tool("pg_ctl", &["start", "--wait", "--timeout=60", "--log", &server.log()]).await;
        server
    }

    fn path(&self) -> &str {
        self.directory.path().to_str().expect("a path in UTF-8")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn log(&self) -> String {
        format!("{}/postgres.log", self.path())
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops the server as a power cut would, and starts it again.
    async fn crash_and_restart(&self) {
        let log = self.log();
        self.tool("pg_ctl", &["restart", "--mode=immediate", "--wait", "--timeout=60", "--log", &log]).await;
    }

    async fn tool(&self, name: &str, arguments: &[&str]) {
        let program = self.bin.join(name);
        let data = self.data();
        let pgdata = ["--pgdata", data.to_str().expect("a path in UTF-8")];
        let program = program.to_str().expect("a path in UTF-8");
        self.run(program, &[arguments, &pgdata].concat()).await;
    }

    /// Runs a program, as a user that PostgreSQL accepts: it refuses to run as root.
    async fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = if is_root() && program != "chown" {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--", program]);
            command
        } else {
            Command::new(program)
        };
        // The server would keep a pipe open for as long as it runs, and reading it would never end.
        let output = std::fs::File::create(self.directory.path().join("tool.log")).expect("a log");
        let status = command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log"))
            .stderr(output)
            .status()
            .await
            .unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
        let said = || std::fs::read_to_string(self.directory.path().join("tool.log")).unwrap_or_default();
        assert!(status.success(), "{program} {arguments:?} failed: {}", said());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its directory goes with the test, so it need not end in good order.
        if let Ok(pid) = std::fs::read_to_string(self.data().join("postmaster.pid")) {
            let pid = pid.lines().next().unwrap_or_default().to_owned();
            let _ = std::process::Command::new("kill").args(["-QUIT", &pid]).status();
        }
    }
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// Writes one event in a transaction after the other until told to stop; returns the ids whose commit was confirmed.
async fn write_until(stop: &AtomicBool, outbox: &Outbox, pool: &Pool, failures: &AtomicUsize) -> Vec<String> {
    let mut confirmed = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let attempt = async {
            let mut client = pool.get().await?;
            let mut tx = outbox.begin(&mut client).await?;
            let written = outbox.write(&mut tx, support::event()).await?;
            tx.commit().await?;
            Ok::<_, pillarbox_core::error::BoxError>(written.id().map(ToString::to_string))
        };
        match attempt.await {
            Ok(id) => confirmed.extend(id),
            Err(_) => {
                failures.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    confirmed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_under_load_loses_and_doubles_nothing() {
    let server = Server::start().await;
    let options = PostgresOptions::parse(&server.url()).expect("a URL").durable_marks(true);
    let store = options.connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(store.clone()).handle_all(recorder.clone()).start().await.expect("starts");
    let config = deadpool_postgres::ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(server.url().parse().expect("a URL"), NoTls, config);
    let pool = Pool::builder(manager).max_size(4).build().expect("a pool");

    let (stop, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (stop, failures) = (Arc::clone(&stop), Arc::clone(&failures));
            let (outbox, pool) = (outbox.clone(), pool.clone());
            #[expect(clippy::disallowed_methods, reason = "the writers are the test's, not the outbox's")]
            tokio::spawn(async move { write_until(&stop, &outbox, &pool, &failures).await })
        })
        .collect();
    for crashes in 0..2 {
        recorder.wait_for_calls(recorder.calls().len() + 300).await;
        server.crash_and_restart().await;
        assert!(failures.load(Ordering::Relaxed) > crashes, "writers see the driver's errors");
    }
    recorder.wait_for_calls(recorder.calls().len() + 300).await;
    stop.store(true, Ordering::Relaxed);
    let mut confirmed = Vec::new();
    for writer in writers {
        confirmed.extend(writer.await.expect("a writer does not panic"));
    }
    support::eventually("all events are delivered", async || {
        store.counts().await.is_ok_and(|counts| counts.pending() == 0)
    })
    .await;
    outbox.shutdown().await;

    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.pending(), counts.dead), (0, 0));
    let mut calls: HashMap<String, usize> = HashMap::new();
    for call in recorder.calls() {
        *calls.entry(call.id.to_string()).or_default() += 1;
    }
    let client = pool.get().await.expect("a connection");
    let rows = client.query("SELECT event_id, attempts FROM outbox_event", &[]).await.expect("reads");
    assert!(rows.len() >= confirmed.len(), "a commit whose answer was lost may add some");
    for row in &rows {
        let (id, attempts): (String, i32) = (row.get(0), row.get(1));
        assert_eq!((calls.remove(&id), attempts), (Some(1), 0), "{id} is handled once and no attempt is counted");
        confirmed.retain(|other| *other != id);
    }
    assert!(confirmed.is_empty(), "every confirmed event is in the table: {confirmed:?}");
    assert!(calls.is_empty(), "and none was handled that is not: {calls:?}");
}
