//! Behind PgBouncer in transaction mode: every statement may run on another server connection.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::server::Server;
use crate::support::{self, LEASE, NONE, done, events, fetch, seqs, with_db};
use deadpool_postgres::{Manager, Pool};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::{Acquired, Epochs, Fence, NodeMode, Partitions, Rebalanced, Renewal};
use pillarbox_core::row::Expected;
use pillarbox_core::store::{
    Admin as _, BegunAttempt, Fetch, FetchScope, FetchedRow, Heads, Purge, Purgeable, Store as _,
};
use pillarbox_core::write::{Begin, Finish, insert};
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use pillarbox_testkit::{drop_after, rows_at};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio_postgres::NoTls;

/// A PgBouncer of the test's own; it ends with it.
pub(crate) struct Bouncer {
    url: String,
    process: Child,
    _directory: TempDir,
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
        .expect("this test needs PgBouncer: apt-get install pgbouncer")
}

impl Bouncer {
    async fn start() -> Self {
        Self::start_with("").await
    }

    /// With more settings.
    pub(crate) async fn start_with(settings_beside: &str) -> Self {
        Self::start_before(&support::url(), &support::host(), settings_beside).await
    }

    /// Before the server at this URL, whose host is `host`.
    async fn start_before(url: &str, host: &str, settings_beside: &str) -> Self {
        let server: tokio_postgres::Config = url.parse().expect("a valid URL");
        let (user, database) = (server.get_user().unwrap_or("postgres"), server.get_dbname().unwrap_or("postgres"));
        let server_port = server.get_ports().first().copied().unwrap_or(5432);
        let password = server.get_password().map(String::from_utf8_lossy);
        let password = password.map(|password| format!(" password='{password}'")).unwrap_or_default();
        let directory = tempfile::Builder::new().prefix("pillarbox-bouncer").tempdir().expect("a directory");
        let port = TcpListener::bind("127.0.0.1:0").await.expect("binds").local_addr().expect("an address").port();
        let settings = directory.path().join("pgbouncer.ini");
        let users = directory.path().join("users.txt");
        // Two server connections for whatever number of clients, and none kept for one of them.
        let text = format!(
            "[databases]\n{database} = host={host} port={server_port} user={user}{password}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\n\
             {settings_beside}",
            users.display()
        );
        std::fs::write(&settings, text).expect("writes");
        std::fs::write(&users, format!("\"{user}\" \"\"\n")).expect("writes");
        let process = command(&settings, directory.path()).spawn().expect("pgbouncer starts");
        let url = format!("postgres://{user}@127.0.0.1:{port}/{database}");
        let bouncer = Self { url, process, _directory: directory };
        support::eventually("pgbouncer listens", async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
        bouncer
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn stop(mut self) {
        self.process.kill().await.expect("stops");
    }
}

/// PgBouncer refuses to run as root; then it runs as the server's user.
fn command(settings: &Path, directory: &Path) -> Command {
    let is_root = std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let mut command = if is_root {
        let owned = std::process::Command::new("chown").args(["-R", "postgres"]).arg(directory).status();
        assert!(owned.is_ok_and(|status| status.success()), "chown to the user postgres");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program());
        command
    } else {
        Command::new(program())
    };
    command.arg("-q").arg(settings).stdin(Stdio::null()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn a_whole_life_in_transaction_mode() {
    with_db(async |db| {
        let bouncer = Bouncer::start().await;
        let store = db.options_at(&format!("{}?pgbouncer=true", bouncer.url())).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store.check().await.expect("the tables are there");
        let node = support::owner(&store).await;

        // More clients than server connections, all at once, again and again.
        let config: tokio_postgres::Config = bouncer.url().parse().expect("valid");
        let writers = Pool::builder(Manager::new(config, NoTls)).max_size(4).build().expect("a pool");
        let write = async |count: usize| {
            let mut written = Vec::new();
            for _ in 0..count {
                let mut client = writers.get().await.expect("a connection");
                // The driver's plain transaction prepares nothing, as a service behind such a pooler has it.
                let mut transaction = tokio_postgres::Client::transaction(&mut client).await.expect("begins");
                written.extend(insert(&store, &mut transaction, events(1)).await.expect("inserts one"));
                written.extend(insert(&store, &mut transaction, events(3)).await.expect("inserts many"));
                transaction.commit().await.expect("commits");
            }
            written
        };
        let drain = async |total: usize| {
            let mut handled = Vec::new();
            while handled.len() < total {
                let found = store.fetch(&fetch(7)).await.expect("fetches");
                assert!(found.rows.iter().all(|row| matches!(row, FetchedRow::Row(_))), "{:?}", found.rows);
                let batch = seqs(&found.rows);
                assert_eq!(
                    store.settle(&node, Fence::Table, &done(&store, &batch).await).await.expect("settles"),
                    NONE
                );
                assert!(matches!(
                    store.renew(&node, LEASE, None, None).await.expect("renews"),
                    Renewal::Renewed { .. }
                ));
                assert!(matches!(store.acquire(&node).await.expect("acquires"), Acquired::Owner { .. }));
                handled.extend(batch);
            }
            handled
        };
        let (a, b, c, d, mut handled) = tokio::join!(write(25), write(25), write(25), write(25), drain(400));
        let mut written = [a, b, c, d].concat();
        written.sort_unstable();
        handled.sort_unstable();
        assert_eq!(handled, written);
        assert_eq!(store.counts().await.expect("counts").done, 400);
        store.leave(&node).await.expect("leaves");

        // The statements of the other modes, and those of operators.
        let row = async |seq| rows_at(&store, &[seq]).await.expect("reads").remove(0);
        let node = support::claimer(&store, "claimer").await;
        let written = write(5).await;
        let claimed = seqs(&store.claim(&node, &fetch(19)).await.expect("claims").rows);
        assert_eq!(claimed, written[..19]);
        let begun = BegunAttempt { row: row(claimed[0]).await, expected: Expected::FIRST, attempts: 0, error: None };
        assert!(store.begin_attempt(&node, Fence::Row, &begun).await.expect("begins"));
        assert_eq!(store.settle(&node, Fence::Row, &done(&store, &claimed[..10]).await).await.expect("settles"), NONE);
        store.release(&node, &rows_at(&store, &claimed[10..]).await.expect("reads")).await.expect("releases");
        assert_eq!(store.reclaim(&node, true).await.expect("reclaims").freed, 0);
        let backlog = store.backlog().await.expect("counts");
        assert_eq!((backlog.due, backlog.delayed, backlog.dead), (10, 0, 0));
        assert_eq!(store.nodes().await.expect("lists").len(), 1);
        let purge = Purge::new(Purgeable::Done, Duration::ZERO, 1000);
        assert_eq!(store.purge(&purge).await.expect("purges").removed, 410);
        store.leave(&node).await.expect("leaves");

        let node = support::node("rebalancer");
        store.join(&node, NodeMode::Partitioned, LEASE).await.expect("joins");
        let rebalanced = store.rebalance(&node, &Epochs::none()).await.expect("rebalances");
        assert!(matches!(rebalanced, Rebalanced::Member(holding) if holding.owned == Partitions::ALL));
        let scope =
            FetchScope { partitions: 0..=255, heads: Heads::RetryAndDead, without: vec![], only: vec![], node: None };
        let found = store.fetch(&Fetch { scope: Some(scope), ..fetch(100) }).await.expect("fetches");
        assert_eq!(seqs(&found.rows), written[10..]);
        store.assign_partitions(&[(row(written[10]).await, 7)]).await.expect("stamps");
        store.promote_due(&rows_at(&store, &written).await.expect("reads")).await.expect("ripens");
        assert_eq!(store.writers().await.expect("asks").highest, written[19]);
        assert_eq!(store.partitions().await.expect("counts").pending, 10);
        assert_eq!(store.blocked(0, 10).await.expect("lists"), []);
        let verdicts = done(&store, &written[10..]).await;
        assert_eq!(store.settle(&node, Fence::Partition, &verdicts).await.expect("settles"), NONE);
        store.leave(&node).await.expect("leaves");
        store.close().await;

        // Without the setting, the error says which one is missing.
        let error = PostgresStore::connect(bouncer.url()).await.expect_err("it needs the setting");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains("pgbouncer=true"), "{error}");
        bouncer.stop().await;
    })
    .await;
}

/// The statements of users' transactions are not prepared either: on another server connection they would not be known.
#[tokio::test]
async fn users_transactions_write_without_prepared_statements() {
    with_db(async |db| {
        let bouncer = Bouncer::start_with("ignore_startup_parameters = extra_float_digits\n").await;
        let store = db.options_at(bouncer.url()).pooler(true).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        let config: tokio_postgres::Config = bouncer.url().parse().expect("valid");
        let deadpool = Pool::builder(Manager::new(config, NoTls)).max_size(4).build().expect("a pool");
        let sqlx = sqlx::postgres::PgPoolOptions::new().max_connections(4);
        let sqlx = sqlx.connect(bouncer.url()).await.expect("connects");
        let unique = || Envelope::builder("test.unique").unique_key("k").payload_json("{}").build().expect("valid");
        macro_rules! write {
            ($begin:expr) => {
                async {
                    for _ in 0..10 {
                        let mut transaction = $begin.await.expect("begins");
                        insert(&store, &mut transaction, events(1)).await.expect("inserts one");
                        insert(&store, &mut transaction, events(3)).await.expect("inserts many");
                        insert(&store, &mut transaction, vec![unique()]).await.expect("inserts one with a key");
                        Finish::commit(transaction).await.expect("commits");
                    }
                }
            };
        }
        let lent = async || {
            let mut client = deadpool.get().await.expect("connects");
            write!(client.transaction()).await;
        };
        let (pooled, own) = (|| write!(Begin::begin(&deadpool)), || write!(Begin::begin(&sqlx)));
        tokio::join!(lent(), lent(), pooled(), pooled(), own(), own());
        assert_eq!(store.counts().await.expect("counts").new, 6 * 10 * 4 + 1);
        store.close().await;
        bouncer.stop().await;
    })
    .await;
}

/// A future dropped in a transaction does not leave a server connection inside it for the next client.
#[tokio::test]
async fn dropped_calls_free_their_server_connection() {
    with_db(async |db| {
        let bouncer = Bouncer::start().await;
        let store = db.options_at(bouncer.url()).pooler(true).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        let node = support::owner(&store).await;
        let mut dropped = 0;
        for waits in (0..10).cycle().take(50) {
            dropped += usize::from(drop_after(waits, store.leave(&support::node("other"))).await.is_none());
            store.renew(&node, LEASE, None, None).await.expect("renews");
        }
        assert!(dropped > 0, "no call waits");
        bouncer.stop().await;
    })
    .await;
}

/// The connection to the pooler outlives a crash of the server, with which the last verdicts may be lost.
#[tokio::test]
async fn a_server_that_has_crashed_between_two_calls_is_noticed() {
    let server = Server::start().await;
    let bouncer = Bouncer::start_before(&server.url(), "127.0.0.1", "").await;
    let options = PostgresOptions::parse(bouncer.url()).expect("a URL").pooler(true);
    let store = options.connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    let node = support::claimer(&store, "claimer").await;
    let scope = FetchScope { partitions: 0..=255, heads: Heads::None, without: vec![], only: vec![], node: None };
    let scoped = Fetch { scope: Some(scope), ..fetch(10) };
    for way in ["fetch", "fetch of partitions", "claim"] {
        let ask = async || {
            let answer = match way {
                "fetch" => store.fetch(&fetch(10)).await,
                "claim" => store.claim(&node, &fetch(10)).await,
                _ => store.fetch(&scoped).await,
            };
            answer.expect("answers");
            store.history()
        };
        let before = ask().await;
        assert_eq!(ask().await, before, "{way}");
        server.crash_and_restart().await;
        let after = ask().await;
        assert_eq!(
            (after.changes, after.losses),
            (before.changes, before.losses + 1),
            "{way}: the server has restarted"
        );
        server.crash_a_process().await;
        assert_eq!(ask().await.losses, after.losses + 1, "{way}: only its processes have");
        assert_eq!(ask().await.losses, after.losses + 1, "{way}");
    }
    store.close().await;
    bouncer.stop().await;
}
