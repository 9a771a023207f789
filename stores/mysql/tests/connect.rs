//! Reaching a database, and saying what went wrong.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

mod support;

use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{Store as _, Upkeep as _};
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use support::with_db;
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
