//! MariaDB servers of a test's own.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Opts, Pool};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A MariaDB server of the test's own, which it may kill as it likes.
pub(crate) struct Server {
    port: u16,
    directory: TempDir,
    process: Child,
}

impl Server {
    /// A server with a binary log under this number, and a database `test`.
    pub(crate) async fn start(number: u32) -> Self {
        Self::start_in("UTC0", number).await
    }

    /// The same on a machine in this time zone, such as `XYZ8` for eight hours behind UTC.
    pub(crate) async fn start_in(zone: &str, number: u32) -> Self {
        let directory = tempfile::Builder::new().prefix("pillarbox-mariadb").tempdir().expect("a directory");
        let path = directory.path();
        if is_root() {
            run(Command::new("chown").arg("mysql").arg(path), path);
        }
        let data = format!("--datadir={}", path.join("data").display());
        let install = ["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"];
        run(as_owner(&program("mariadb-install-db"), path).args(install), path);
        let port = TcpListener::bind("127.0.0.1:0").await.expect("binds").local_addr().expect("an address").port();
        let log = std::fs::File::create(path.join("server.log")).expect("a log");
        let process = as_owner(&program("mariadbd"), path)
            .args(["--no-defaults", &data, "--bind-address=127.0.0.1", "--skip-name-resolve", "--log-bin=binlog"])
            .args([format!("--port={port}"), format!("--server-id={number}")])
            .arg(format!("--socket={}", path.join("socket").display()))
            .arg("--innodb-flush-log-at-trx-commit=0")
            .env("TZ", zone)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("mariadbd can be run");
        let server = Self { port, directory, process };
        for _ in 0..600 {
            if let Ok(mut connection) = mysql_async::Conn::new(server.opts("mysql")).await {
                connection.query_drop("CREATE DATABASE IF NOT EXISTS test").await.expect("creates");
                return server;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let said = std::fs::read_to_string(server.directory.path().join("server.log")).unwrap_or_default();
        panic!("MariaDB did not start: {said}");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn opts(&self, database: &str) -> Opts {
        Opts::from_url(&format!("mysql://root@127.0.0.1:{}/{database}?prefer_socket=false", self.port)).expect("a URL")
    }

    pub(crate) fn pool(&self) -> Pool {
        Pool::new(self.opts("test"))
    }

    /// Ends the server as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    /// Writes the tables as SQL that replaces them.
    pub(crate) fn dump(&self, file: &str) {
        let (port, path) = (self.port.to_string(), self.directory.path());
        let output = std::fs::File::create(path.join(file)).expect("a file");
        let mut dump = Command::new(program("mariadb-dump"));
        dump.args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--user=root",
            "--single-transaction",
            "--port",
            &port,
            "test",
        ]);
        let status = dump.stdin(Stdio::null()).stdout(output).status().expect("mariadb-dump can be run");
        assert!(status.success(), "mariadb-dump failed");
    }

    /// Runs such SQL.
    pub(crate) fn restore(&self, file: &str) {
        let (port, path) = (self.port.to_string(), self.directory.path());
        let input = std::fs::File::open(path.join(file)).expect("a file");
        let mut restore = Command::new(program("mariadb"));
        restore.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--port", &port, "test"]);
        let status = restore.stdin(input).status().expect("mariadb can be run");
        assert!(status.success(), "mariadb failed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of MariaDB, which Debian keeps out of an ordinary user's PATH.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = places.map(|place| place.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("this test needs the program {name} of MariaDB: run scripts/setup"))
}

/// Runs as a user that MariaDB accepts: it refuses to run as root.
fn as_owner(program: &Path, directory: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=mysql", "--regid=mysql", "--init-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // A server that starts removes from there what looks like its temporary tables, also those of others.
    command.current_dir(directory).env("TMPDIR", directory);
    command
}

fn run(command: &mut Command, directory: &Path) {
    let log = std::fs::File::create(directory.join("tool.log")).expect("a log");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let said = || std::fs::read_to_string(directory.join("tool.log")).unwrap_or_default();
    assert!(status.success(), "{command:?} failed: {}", said());
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|metadata| metadata.uid() == 0)
}
