//! Reaching a database, and saying what went wrong.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, LEASE, done, events, with_db};
use mysql_async::{Opts, OptsBuilder};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Fence, NodeMode};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const SECRET: &str = "s3cr3t";

/// An error and everything below it, as a log would print them.
fn everything(error: &StoreError) -> String {
    let mut text = format!("{error} | {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(&format!(" | {error} | {error:?}"));
        source = error.source();
    }
    text
}

#[tokio::test]
async fn a_database_that_is_down_is_named_at_once() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").await.expect("binds").local_addr().expect("an address").port();
    let url = format!("mysql://shop:{SECRET}@127.0.0.1:{port}/orders");
    let error = MysqlStore::connect(&url).await.expect_err("nobody is there");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.is_temporary());
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}/orders")), "{error}");
    assert!(!everything(&error).contains(SECRET), "{}", everything(&error));
}

/// It takes connections and never says a word, as a server behind a broken network does.
#[tokio::test]
async fn a_silent_server_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = silent.local_addr().expect("an address").port();
    let options = MysqlOptions::parse(&format!("mysql://shop:{SECRET}@127.0.0.1:{port}/orders")).expect("valid");
    let error = options.connect_timeout(Duration::from_millis(50)).connect().await.expect_err("nobody answers");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(!everything(&error).contains(SECRET), "{}", everything(&error));
}

#[tokio::test]
async fn passwords_stay_secret() {
    with_db(async |db| {
        let user = &support::unique("u")[..20];
        db.execute(&format!(
            "CREATE USER '{user}'@'%' IDENTIFIED BY '{SECRET}'; GRANT ALL ON {}.* TO '{user}'@'%'",
            db.name
        ))
        .await;
        let options = MysqlOptions::parse(&db.url_with(&format!("{user}:{SECRET}"), "")).expect("valid");
        let store = options.clone().connect().await.expect("connects");
        for text in [format!("{options:?}"), format!("{store:?}"), format!("{:?}", store.info())] {
            assert!(!text.contains(SECRET), "{text}");
        }
        let error = store.counts().await.expect_err("there are no tables");
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("pillarbox migrate"), "{error}");
        assert!(!everything(&error).contains(SECRET), "{}", everything(&error));

        let wrong = MysqlOptions::parse(&db.url_with(&format!("{user}:{SECRET}!"), "")).expect("valid");
        let error = wrong.connect().await.expect_err("it is the wrong password");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(!everything(&error).contains(SECRET), "{}", everything(&error));
        db.execute(&format!("DROP USER '{user}'@'%'")).await;
    })
    .await;
    let malformed = [
        "postgres://u:s3cr3t@h/d",
        "mysql:u:s3cr3t@h/d",
        "mysql://u:s3cr3t@/d",
        "mysql://u:s3cr3t@h:port/d",
        "mysql://u:s3cr3t@h:99999/d",
        "mysql://u:a/s3cr3t@h/d?ssl-mode=off",
        "mysql://u:a/b?s3cr3t=x@h/d",
        "mysql://u:s3cr3t@h/d?ssl-mode",
        "mysql://u:s3cr3t@h/d?ssl-mode=s3cr3t",
        "mysql://u:s3cr3t@h/d?sslmode=required",
        "mysql://u:s3cr3t@h/d?password=s3cr3t",
        "mysql://u:s3cr3t@h/d?connect_timeout=s3cr3t",
        "mysql://u:s3cr3t@h/%ff",
    ];
    for url in malformed {
        let error = MysqlOptions::parse(url).expect_err(url);
        assert_eq!(error.kind(), StoreErrorKind::Config, "{url}: {error}");
        assert!(!everything(&error).contains(SECRET), "{url}: {}", everything(&error));
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    with_db(async |db| {
        let nowhere = db.url_with("", "").replace(&db.name, "pillarbox_no_such_database");
        let error = MysqlStore::connect(&nowhere).await.expect_err("no such database");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains("create the database"), "{error}");
        let nothing = db.url_with("", "").replace(&db.name, "");
        let store = MysqlStore::connect(&nothing).await.expect("connects");
        let error = store.counts().await.expect_err("no database was named");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    })
    .await;
    let options = MysqlOptions::parse("mysql://u@h/d").expect("valid");
    for error in [
        options.clone().pool_size(0).connect().await,
        options.clone().table("a-b").connect().await,
        options.connect_timeout(Duration::ZERO).connect().await,
    ] {
        assert_eq!(error.expect_err("no such setting").kind(), StoreErrorKind::Config);
    }
}

/// What is not offered is not silently done without.
#[tokio::test]
async fn tls_is_used_as_far_as_asked() {
    with_db(async |db| {
        let offered = db.text("SELECT @@have_ssl").await.as_deref() == Some("YES");
        let connect = async |mode: &str| {
            let options = MysqlOptions::parse(&db.url_with("", &format!("ssl-mode={mode}"))).expect("valid");
            options.connect().await
        };
        for mode in ["disabled", "preferred"] {
            connect(mode).await.expect(mode);
        }
        if offered {
            connect("required").await.expect("required");
        } else {
            let error = connect("required").await.expect_err("the server has no TLS");
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
            assert!(error.to_string().contains("ssl-mode"), "{error}");
        }
        // Whoever signed the test server's certificate, the operating system does not trust it.
        let error = connect("verify_identity").await.expect_err("it is not trusted");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error:?}");
        if let (true, Ok(authority)) = (offered, std::env::var("PILLARBOX_TEST_MYSQL_CA")) {
            connect(&format!("verify_identity&ssl-ca={authority}")).await.expect("it is trusted");
            let options = MysqlOptions::parse(&db.url_with("", "ssl-mode=verify_identity")).expect("valid");
            options.ca_file(authority).connect().await.expect("it is trusted");
        }
        let error = connect("verify_identity&ssl-ca=/no/such/file").await.expect_err("no file");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error:?}");
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    })
    .await;
}

/// A greeting that offers no TLS: protocol 10, its version, connection 1, and the capabilities of a server without more.
const WITHOUT_TLS: &[u8] = b"\x49\0\0\0\x0a8.0.0\0\x01\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0\
                            ijklmnopqrst\0mysql_native_password\0";

/// Greets without offering TLS; returns all that it was sent, in as many connections as were made while `asking` went on.
async fn heard_without_tls(listener: &TcpListener, asking: impl Future<Output = ()>) -> Vec<u8> {
    let mut heard = Vec::new();
    tokio::pin!(asking);
    loop {
        let mut stream = tokio::select! {
            accepted = listener.accept() => accepted.expect("accepts").0,
            () = &mut asking => return heard,
        };
        stream.write_all(WITHOUT_TLS).await.expect("greets");
        let read = stream.read_to_end(&mut heard);
        tokio::select! {
            // A client that leaves at once may reset the connection.
            _ = read => {}
            () = &mut asking => return heard,
        }
    }
}

/// No rule takes the address `0.0.0.0` for this machine, and Linux leads it there.
#[tokio::test]
async fn a_server_without_tls_on_another_machine_learns_no_password() {
    for mode in ["", "?ssl-mode=preferred", "?ssl-mode=required"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        let mut refused = None;
        let heard = heard_without_tls(&listener, async {
            let options = MysqlOptions::parse(&format!("mysql://shop:{SECRET}@0.0.0.0:{port}/orders{mode}"));
            refused = options.expect("valid").connect_timeout(Duration::from_secs(2)).connect().await.err();
        })
        .await;
        assert!(heard.is_empty(), "{mode:?}: user and password were sent to a server without TLS");
        let error = refused.expect("the server has no TLS");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("`ssl-mode=disabled`"), "{error}");
    }
}

/// A server that restarts ends the connections; a call or two notice, then there are new ones.
#[tokio::test]
async fn ended_connections_are_replaced() {
    with_db(async |db| {
        let store = db.options().pool_size(1).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store.counts().await.expect("counts");
        let mut admin = db.pool.get_conn().await.expect("a connection");
        let sql =
            format!("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{}' AND ID <> CONNECTION_ID()", db.name);
        let ids: Vec<u64> = mysql_async::prelude::Queryable::query(&mut admin, sql).await.expect("lists");
        assert!(!ids.is_empty());
        for id in ids {
            mysql_async::prelude::Queryable::query_drop(&mut admin, format!("KILL {id}")).await.expect("kills");
        }
        if let Err(error) = store.counts().await {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        }
        store.counts().await.expect("reconnects");
    })
    .await;
}

/// A failover leaves connections to the old primary, which is read-only from then on. Sessions here are read-only if a table says
/// so when they begin.
#[tokio::test]
async fn a_read_only_connection_is_dropped() {
    with_db(async |db| {
        db.store().await;
        db.execute("CREATE TABLE read_only_now (flag INT NOT NULL)").await;
        db.execute("INSERT INTO read_only_now VALUES (1)").await;
        let options = Opts::from_url(&db.url_with("", "")).expect("valid");
        let setup =
            "SET SESSION /*M! tx_read_only */ /*!80001 transaction_read_only */ = (SELECT flag FROM read_only_now)";
        let options = OptsBuilder::from_opts(options).setup(vec![setup]);
        let store = MysqlOptions::from_opts(options).pool_size(1).connect().await.expect("connects");
        let node = support::node("shop");
        let error = store.join(&node, NodeMode::SingleNode, LEASE).await.expect_err("it is read-only");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
        db.execute("UPDATE read_only_now SET flag = 0").await;
        store.join(&node, NodeMode::SingleNode, LEASE).await.expect("joins on a new connection");
    })
    .await;
}

/// What sessions of the user's own run at their start cannot undo what the store sets.
#[tokio::test]
async fn the_setup_of_the_users_options_runs_before_that_of_the_store() {
    with_db(async |db| {
        db.execute("CREATE TABLE seen (wait INT NOT NULL)").await;
        let options = Opts::from_url(&db.url_with("", "")).expect("valid");
        let setup = vec!["INSERT INTO seen VALUES (@@innodb_lock_wait_timeout)"];
        let options = OptsBuilder::from_opts(options).prefer_socket(false).setup(setup);
        MysqlOptions::from_opts(options).connect().await.expect("connects");
        let seen = db.text("SELECT CAST(MAX(wait) AS CHAR) FROM seen").await.expect("the setup has run");
        assert_ne!(seen, "10", "the store waits for a lock that long, and has set it before");
    })
    .await;
}

/// A verdict that met one of these is recorded later; after an unexpected error it would be given up, and the handler called again.
#[tokio::test]
async fn errors_that_pass_are_temporary() {
    use StoreErrorKind::{Contention, Unavailable, Unexpected};
    with_db(async |db| {
        let store = db.store().await;
        let owner = support::owner(&store).await;
        let written = db.write(&store, events(1)).await;
        let verdicts = done(&store, &written).await;
        for (number, state, kind) in [
            // A member of a cluster that has no majority, a full disk, and what a cluster or its certification refuses.
            (1047, "08S01", Unavailable),
            (1030, "HY000", Unavailable),
            (3100, "HY000", Unavailable),
            (3101, "40000", Contention),
            // Some that nobody has listed.
            (3999, "08007", Unavailable),
            (3999, "40002", Contention),
            (3999, "45000", Unexpected),
        ] {
            db.execute("DROP TRIGGER IF EXISTS refuses").await;
            db.execute(&format!(
                "CREATE TRIGGER refuses BEFORE UPDATE ON outbox_event FOR EACH ROW
                 SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'refused'"
            ))
            .await;
            let error = store.settle(&owner, Fence::Table, &verdicts).await.expect_err("the server refuses");
            assert_eq!(error.kind(), kind, "{number} ({state}): {error}");
        }
    })
    .await;
}
