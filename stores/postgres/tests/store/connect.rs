//! Reaching a database, trusting it, and saying what went wrong.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, Db, LEASE, url, with_db};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_postgres::{PostgresOptions, PostgresStore};
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
    let url = format!("postgres://shop:{SECRET}@127.0.0.1:{port}/orders");
    let error = PostgresStore::connect(&url).await.expect_err("nobody is there");
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
    let options = PostgresOptions::parse(&format!("postgres://shop:{SECRET}@127.0.0.1:{port}/orders")).expect("valid");
    let error = options.connect_timeout(Duration::from_millis(50)).connect().await.expect_err("nobody answers");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(!everything(&error).contains(SECRET), "{}", everything(&error));
}

#[tokio::test]
async fn passwords_stay_secret() {
    with_db(async |db| {
        let role = support::unique("pillarbox_role");
        db.execute(&format!("CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")).await;
        let options = PostgresOptions::parse(&db.url_with(&format!("{role}:{SECRET}"), "")).expect("valid");
        let store = options.clone().connect().await.expect("connects");
        for text in [format!("{options:?}"), format!("{store:?}"), format!("{:?}", store.info())] {
            assert!(!text.contains(SECRET), "{text}");
        }
        let error = store.counts().await.expect_err("there are no tables");
        assert!(!everything(&error).contains(SECRET), "{}", everything(&error));
        drop(store);
        db.execute(&format!("DROP ROLE {role}")).await;
    })
    .await;
    let malformed = [
        "mysql://u:s3cr3t@h/d",
        "postgres:u:s3cr3t@h/d",
        "postgres://u:s3cr3t@/d",
        "postgres://u:s3cr3t@h:port/d",
        "postgres://u:s3cr3t@h:99999/d",
        "postgres://u:a/s3cr3t@h/d?sslmode=off",
        "postgres://u:a/b?s3cr3t=x@h/d",
        "postgres://u:s3cr3t@h/d?sslmode",
        "postgres://u:s3cr3t@h/d?sslmode=s3cr3t",
        "postgres://u:s3cr3t@h/d?ssl_mode=require",
        "postgres://u:s3cr3t@h/d?password=s3cr3t&connect_timeout=soon",
        "postgres://u:s3cr3t@h/d?pgbouncer=s3cr3t",
        "postgres://u:s3cr3t@h/%ff",
    ];
    for url in malformed {
        let error = PostgresOptions::parse(url).expect_err(url);
        assert_eq!(error.kind(), StoreErrorKind::Config, "{url}: {error}");
        assert!(!everything(&error).contains(SECRET), "{url}: {}", everything(&error));
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    with_db(async |db| {
        let nowhere = db.url_with("", "&dbname=pillarbox_no_such_database");
        let error = PostgresStore::connect(&nowhere).await.expect_err("no such database");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains("create the database"), "{error}");
    })
    .await;
    let error = PostgresOptions::parse("postgres://u@h/d?ssl_mode=require").expect_err("unknown");
    assert!(error.to_string().contains("`ssl_mode`") && error.to_string().contains("sslmode"), "{error}");
    let options = PostgresOptions::parse("postgres://u@h/d").expect("valid");
    for error in [options.clone().pool_size(0).connect().await, options.connect_timeout(Duration::ZERO).connect().await]
    {
        assert_eq!(error.expect_err("no such setting").kind(), StoreErrorKind::Config);
    }
}

/// What each mode makes of the server's certificate.
#[tokio::test]
async fn tls_is_verified_as_far_as_asked() {
    with_db(async |db| {
        let directory = tempfile::tempdir().expect("a directory");
        let ours = directory.path().join("ca.pem");
        std::fs::write(&ours, authority(db).await).expect("writes");
        let ours = ours.to_str().expect("UTF-8");
        let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/other_authority.pem");

        let mut addresses = tokio::net::lookup_host((support::host(), 0)).await.expect("resolves");
        let address = addresses.next().expect("an address").ip();
        // The certificate is for `localhost`; `hostaddr` leads the other name to the same server.
        let connect = async |host: &str, parameters: &str| {
            let url = db.url_at(host, "", &format!("&hostaddr={address}{parameters}"));
            let store = db.options_at(&url).connect().await?;
            store.migrate().await?;
            Ok::<_, StoreError>(store)
        };
        let accepted = [
            ("elsewhere", "&sslmode=disable".to_owned(), false),
            ("elsewhere", String::new(), true),
            ("elsewhere", "&sslmode=prefer".to_owned(), true),
            ("elsewhere", "&sslmode=require".to_owned(), true),
            ("elsewhere", format!("&sslmode=require&sslrootcert={ours}"), true),
            ("elsewhere", format!("&sslmode=verify-ca&sslrootcert={ours}"), true),
            ("localhost", format!("&sslmode=verify-full&sslrootcert={ours}"), true),
        ];
        for (host, parameters, encrypted) in accepted {
            let name = support::unique("tls");
            let parameters = format!("{parameters}&application_name={name}");
            let store = connect(host, &parameters).await.unwrap_or_else(|error| panic!("{parameters}: {error:?}"));
            let sql = format!(
                "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{name}'"
            );
            assert_eq!(db.text(&sql).await, Some(encrypted.to_string()), "{host} {parameters}");
            drop(store);
        }
        let refused = [
            ("elsewhere", format!("&sslmode=verify-full&sslrootcert={ours}")),
            ("localhost", format!("&sslmode=verify-full&sslrootcert={other}")),
            ("localhost", format!("&sslmode=verify-ca&sslrootcert={other}")),
            ("localhost", format!("&sslmode=require&sslrootcert={other}")),
        ];
        for (host, parameters) in refused {
            let error = connect(host, &parameters).await.err().unwrap_or_else(|| panic!("{host} {parameters}"));
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{host} {parameters}: {error:?}");
        }
        // No rule takes the address `0.0.0.0` for this machine, and Linux leads it there.
        let elsewhere = if address.is_loopback() { "0.0.0.0".to_owned() } else { address.to_string() };
        let to = |parameters: &str| db.options_at(&db.url_at(&elsewhere, "", parameters));
        to(&format!("&sslrootcert={ours}")).connect().await.expect("it is trusted, whatever host it names");
        to("&sslmode=require").ca_file(ours).connect().await.expect("it is trusted, whatever host it names");
        for options in [
            to(&format!("&sslrootcert={other}")),
            to(&format!("&sslmode=prefer&sslrootcert={other}")),
            to("").ca_file(other),
            to("&sslmode=require").ca_file(other),
        ] {
            let error = options.clone().connect().await.err().unwrap_or_else(|| panic!("{options:?}"));
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{options:?}: {error:?}");
        }
        let error = connect("localhost", "&sslmode=verify-full&sslrootcert=/no/such/file").await.expect_err("no file");
        assert_eq!(error.kind(), StoreErrorKind::Config);
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    })
    .await;
}

/// Refuses TLS, and answers whatever comes then by asking for the password in clear; returns all that it was sent.
async fn server_without_tls(listener: TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().await.expect("accepts");
    let (mut heard, mut piece) = (Vec::new(), [0; 1024]);
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        let answer: &[u8] = if heard.is_empty() { b"N" } else { b"R\0\0\0\x08\0\0\0\x03" };
        heard.extend_from_slice(&piece[..length]);
        if stream.write_all(answer).await.is_err() {
            break;
        }
    }
    heard
}

/// No rule takes the address `0.0.0.0` for this machine, and Linux leads it there.
#[tokio::test]
async fn a_server_without_tls_on_another_machine_learns_no_password() {
    for mode in ["", "&sslmode=allow", "&sslmode=prefer", "&sslmode=require"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        let url = format!("postgres://shop:{SECRET}@0.0.0.0:{port}/orders?connect_timeout=10{mode}");
        let (heard, connected) = tokio::join!(server_without_tls(listener), PostgresStore::connect(&url));
        let error = connected.expect_err("the server has no TLS");
        assert!(!String::from_utf8_lossy(&heard).contains(SECRET), "{mode:?}: the password was sent in clear");
        assert_eq!(heard.len(), 8, "{mode:?}: more was sent than the request for TLS");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("`sslmode=disable`"), "{error}");
    }
}

/// Who signed the server's certificate: the authority the test server was made with, else the certificate itself.
async fn authority(db: &Db) -> String {
    if let Ok(path) = std::env::var("PILLARBOX_TEST_POSTGRES_CA") {
        return std::fs::read_to_string(path).expect("PILLARBOX_TEST_POSTGRES_CA can be read");
    }
    let on = db.text("SELECT current_setting('ssl')").await;
    assert_eq!(on.as_deref(), Some("on"), "{} has no TLS; run the tests by ./scripts/test", url());
    db.text("SELECT pg_read_file(current_setting('ssl_cert_file'))").await.expect("a certificate")
}

/// A server that became a standby is left, not clung to: the next call has another connection.
#[tokio::test]
async fn a_read_only_connection_is_dropped() {
    with_db(async |db| {
        db.store().await;
        let role = support::unique("pillarbox_role");
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {0} TO {role};
             GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {role};
             ALTER ROLE {role} SET default_transaction_read_only = on",
            db.schema
        ))
        .await;
        let store = db.options_as(&role).pool_size(1).connect().await.expect("connects");
        let node = support::node("shop");
        let error = store.join(&node, NodeMode::SingleNode, LEASE).await.expect_err("it is read-only");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("`default_transaction_read_only` is on"), "{error}");
        db.execute(&format!("ALTER ROLE {role} RESET default_transaction_read_only")).await;
        store.join(&node, NodeMode::SingleNode, LEASE).await.expect("joins on a new connection");
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

/// A server that restarts ends the connections; a call or two notice, then there are new ones.
#[tokio::test]
async fn ended_connections_are_replaced() {
    with_db(async |db| {
        let name = support::unique("ended");
        let options = db.options_at(&db.url_with("", &format!("&application_name={name}")));
        let store = options.pool_size(1).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        // Those that had their own session while the tables were made may be ending by themselves.
        let end = format!(
            "SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{name}'"
        );
        assert_eq!(db.text(&end).await.as_deref(), Some("true"));
        if let Err(error) = store.counts().await {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        }
        store.counts().await.expect("reconnects");
    })
    .await;
}
