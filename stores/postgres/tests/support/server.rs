//! PostgreSQL servers of a test's own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_postgres::{Config, NoTls};

/// A PostgreSQL server of the test's own, which it may stop as it likes.
pub(crate) struct Server {
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
    newest.expect(
        "this test needs PostgreSQL's programs: run scripts/setup and ./scripts/test, or set PILLARBOX_TEST_POSTGRES_BIN",
    )
}

impl Server {
    pub(crate) async fn start() -> Self {
        let server = Self::prepare().await;
        server.tool("initdb", &["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]).await;
        server.begin("").await;
        server
    }

    /// A server with more settings, with lines of `pg_hba.conf` before those of `initdb`, and with files of its own. `{dir}` in both is
    /// its directory.
    pub(crate) async fn start_with(settings: &str, access: &str, write: impl FnOnce(&Path)) -> Self {
        let server = Self::prepare().await;
        server.tool("initdb", &["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]).await;
        let file = server.data().join("pg_hba.conf");
        let others = std::fs::read_to_string(&file).expect("reads who may connect");
        std::fs::write(file, format!("{access}\n{others}")).expect("writes who may connect");
        write(server.directory.path());
        if is_root() {
            server.run("chown", &["-R", "postgres", server.path()]).await;
        }
        server.begin(&settings.replace("{dir}", server.path())).await;
        server
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A server that follows this one.
    pub(crate) async fn replica(&self) -> Self {
        let replica = Self::prepare().await;
        let port = self.port.to_string();
        let from =
            ["--host=127.0.0.1", "--port", &port, "--username=postgres", "--checkpoint=fast", "--write-recovery-conf"];
        replica.tool("pg_basebackup", &from).await;
        replica.begin(&std::fs::read_to_string(replica.settings()).expect("reads the settings")).await;
        replica
    }

    async fn prepare() -> Self {
        let directory = tempfile::Builder::new().prefix("pillarbox-postgres").tempdir().expect("a directory");
        let port = TcpListener::bind("127.0.0.1:0").await.expect("binds").local_addr().expect("an address").port();
        let server = Self { bin: programs(), port, directory };
        if is_root() {
            server.run("chown", &["postgres", server.path()]).await;
        }
        server
    }

    async fn begin(&self, settings: &str) {
        // The last setting of a name counts.
        let port = self.port;
        let settings = format!(
            "{settings}\nport = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_prepared_transactions = 4\n"
        );
        std::fs::write(self.settings(), settings).expect("writes the settings");
        self.tool("pg_ctl", &["start", "--wait", "--timeout=60", "--log", &self.log()]).await;
    }

    fn path(&self) -> &str {
        self.directory.path().to_str().expect("a path in UTF-8")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn settings(&self) -> PathBuf {
        self.data().join("postgresql.auto.conf")
    }

    fn log(&self) -> String {
        format!("{}/postgres.log", self.path())
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops the server as a power cut would, and starts it again.
    pub(crate) async fn crash_and_restart(&self) {
        let log = self.log();
        self.tool("pg_ctl", &["restart", "--mode=immediate", "--wait", "--timeout=60", "--log", &log]).await;
    }

    /// Kills one process of the server, which then ends all others and starts them anew.
    pub(crate) async fn crash_a_process(&self) {
        let config: Config = self.url().parse().expect("a URL");
        let (victim, connection) = config.connect(NoTls).await.expect("connects");
        let (_witness, ended) = config.connect(NoTls).await.expect("connects");
        let killed = async {
            let rows = victim.query_typed("SELECT pg_backend_pid()", &[]).await.expect("asks");
            let pid: i32 = rows[0].get(0);
            self.run("kill", &["-KILL", &pid.to_string()]).await;
        };
        let (_closed, ()) = tokio::join!(connection, killed);
        // The other one ends once the server has begun to.
        let _closed = ended.await;
        super::eventually("the server is back", async || config.connect(NoTls).await.is_ok()).await;
    }

    /// Stops the server as a power cut would.
    pub(crate) async fn crash(&self) {
        self.tool("pg_ctl", &["stop", "--mode=immediate", "--wait", "--timeout=60"]).await;
    }

    /// Makes a replica a primary.
    pub(crate) async fn promote(&self) {
        self.tool("pg_ctl", &["promote", "--wait", "--timeout=60"]).await;
    }

    /// Writes all databases' tables as SQL that replaces them.
    pub(crate) async fn dump(&self, file: &str) {
        let file = format!("--file={}/{file}", self.path());
        self.client("pg_dump", &["--clean", "--if-exists", &file]).await;
    }

    /// Runs such SQL.
    pub(crate) async fn restore(&self, file: &str) {
        let file = format!("--file={}/{file}", self.path());
        self.client("psql", &["--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", &file]).await;
    }

    async fn client(&self, name: &str, arguments: &[&str]) {
        let program = self.bin.join(name);
        let program = program.to_str().expect("a path in UTF-8");
        let database = format!("--dbname={}", self.url());
        self.run(program, &[arguments, &[&database]].concat()).await;
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
