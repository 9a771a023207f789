//! Servers of a test's own, which it may kill.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use mysql_async::{Conn, Opts, OptsBuilder};
use pillarbox_testkit::publishers::{self, Place};
use tokio::time::{Instant, sleep};

/// A database server may be starting for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A database server.
pub(crate) struct Server {
    server: publishers::Server,
    url: fn(u16) -> String,
    /// The program that ends it in such a way that the operating system keeps nothing of its memory.
    end: Option<PathBuf>,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        (self.url)(self.server.address().port())
    }

    /// Kills it by SIGKILL, and starts it on the same data, until it answers.
    pub(crate) async fn kill_and_restart(&mut self) {
        let since = Instant::now();
        // PostgreSQL's sessions notice a moment later that their postmaster is gone, and until then it does not start.
        while let Err(error) = self.server.restart().await {
            assert!(since.elapsed() < PATIENCE, "{error}");
            sleep(Duration::from_millis(20)).await;
        }
        self.answers().await;
    }

    /// Waits until it is recovered.
    async fn answers(&self) {
        let (url, since) = (self.url(), Instant::now());
        loop {
            let answer = if url.starts_with("postgres:") {
                tokio_postgres::connect(&url, tokio_postgres::NoTls).await.map(drop).map_err(|error| error.to_string())
            } else {
                let options = OptsBuilder::from_opts(Opts::from_url(&url).expect("a URL")).prefer_socket(false);
                Conn::new(options).await.map(drop).map_err(|error| error.to_string())
            };
            let Err(error) = answer else { return };
            assert!(since.elapsed() < PATIENCE, "{error}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pg_ctl) = &self.end {
            let mut stop = as_owner(pg_ctl, "postgres");
            stop.args(["stop", "--mode=immediate", "--wait", "--pgdata"])
                .arg(self.server.place().directory.join("data"));
            // One that is down already cannot be stopped.
            drop(run(&mut stop));
        }
    }
}

/// A server of PostgreSQL.
pub(crate) async fn postgres() -> Server {
    let bin = postgres_programs();
    let (initdb, program) = (bin.join("initdb"), bin.join("postgres"));
    let server = start(&program, "postgres", move |place, command| {
        let data = place.directory.join("data");
        if !data.exists() {
            let mut initdb = as_owner(&initdb, "postgres");
            initdb.args([
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--pgdata",
            ]);
            run(initdb.arg(&data))?;
        }
        command.arg("-D").arg(data).args(["-p", &place.port.to_string(), "-h", "127.0.0.1", "-k", ""]);
        Ok(())
    });
    let url = |port| format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let server = Server { server: server.await, url, end: Some(bin.join("pg_ctl")) };
    server.answers().await;
    server
}

/// A server of MariaDB.
pub(crate) async fn mariadb() -> Server {
    let server = start(Path::new("mariadbd"), "mysql", |place, command| {
        let data = format!("--datadir={}", place.directory.join("data").display());
        if !place.directory.join("data").exists() {
            let mut install = as_owner(Path::new("mariadb-install-db"), "mysql");
            // It removes from there what looks like its temporary tables, also those of other servers.
            install.env("TMPDIR", &place.directory);
            run(install.args(["--no-defaults", &data, "--auth-root-authentication-method=normal"]))?;
        }
        command.env("TMPDIR", &place.directory).args(["--no-defaults", &data, "--bind-address=127.0.0.1"]);
        command.arg("--skip-name-resolve").arg(format!("--port={}", place.port));
        command.arg(format!("--socket={}", place.directory.join("socket").display()));
        Ok(())
    });
    let url = |port| format!("mysql://root@127.0.0.1:{port}/test");
    let server = Server { server: server.await, url, end: None };
    server.answers().await;
    server
}

/// Starts a server as a user that it accepts: none runs as root.
async fn start(
    program: &Path,
    user: &'static str,
    prepare: impl Fn(&Place, &mut Command) -> io::Result<()> + Send + Sync + 'static,
) -> publishers::Server {
    let program = program.to_str().expect("a path in UTF-8").to_owned();
    let name = if is_root() { "setpriv" } else { &*program.clone() };
    let server = publishers::Server::start(name, move |place, command| {
        if is_root() {
            run(Command::new("chown").arg(user).arg(&place.directory))?;
            command.args(owner(user)).arg(&program);
        }
        prepare(place, command)
    });
    server.await.unwrap_or_else(|error| panic!("{error}"))
}

fn as_owner(program: &Path, user: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(owner(user)).arg(program);
    command
}

/// The arguments of `setpriv` before the program's.
fn owner(user: &str) -> [String; 4] {
    [format!("--reuid={user}"), format!("--regid={user}"), "--init-groups".to_owned(), "--".to_owned()]
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.current_dir("/").stdin(Stdio::null()).output()?;
    let said = || format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(io::Error::other(said())) }
}

/// The programs of PostgreSQL: the named ones, else the newest that Debian's packages installed.
fn postgres_programs() -> PathBuf {
    if let Some(bin) = std::env::var_os("PILLARBOX_TEST_POSTGRES_BIN") {
        return bin.into();
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).max();
    newest.expect("this test needs PostgreSQL's programs: run scripts/setup, or set PILLARBOX_TEST_POSTGRES_BIN")
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|metadata| metadata.uid() == 0)
}
