//! The defaults are the library's.

use std::time::Duration;

use pillarbox_config::{Loader, Settings};
use pillarbox_core::retry::ExponentialBackoff;

#[test]
fn without_any_source_the_settings_are_the_defaults_and_valid() {
    let read = Loader::new().load().expect("valid");
    assert_eq!(read, Settings::default());
}

#[test]
fn the_backoff_is_the_librarys() {
    let retry = Settings::default().retry;
    assert_eq!(ExponentialBackoff::new(retry.base, retry.cap), Ok(ExponentialBackoff::default()));
}

#[cfg(feature = "postgres")]
#[test]
fn the_options_of_postgres_are_the_librarys() {
    const URL: &str = "postgres://shop@localhost/shop";
    let mut settings = Settings::default();
    settings.store.url = Some(URL.into());
    let ours = settings.postgres_options().expect("valid");
    let theirs = pillarbox_postgres::PostgresOptions::parse(URL).expect("valid");
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[cfg(feature = "mysql")]
#[test]
fn the_options_of_mysql_are_the_librarys() {
    const URL: &str = "mysql://shop@localhost/shop";
    let mut settings = Settings::default();
    settings.store.url = Some(URL.into());
    let ours = settings.mysql_options().expect("valid");
    let theirs = pillarbox_mysql::MysqlOptions::parse(URL).expect("valid");
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[cfg(feature = "sqlite")]
#[test]
fn the_options_of_sqlite_are_the_librarys() {
    let mut settings = Settings::default();
    settings.store.url = Some("shop.db".into());
    let ours = settings.sqlite_options().expect("valid");
    let theirs = pillarbox_sqlite::SqliteOptions::new("shop.db");
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[cfg(all(feature = "postgres", feature = "sqlite"))]
#[test]
fn only_a_sqlite_database_has_a_file() {
    let mut settings = Settings::default();
    let files = [("sqlite://a%20b.db", Some("a b.db")), ("a%20b.db", Some("a%20b.db")), ("postgres://u@h/d", None)];
    for (url, file) in files {
        settings.store.url = Some(url.into());
        assert_eq!(settings.sqlite_file().expect("valid").as_deref(), file.map(std::path::Path::new));
    }
}

#[test]
fn durations_are_what_they_say() {
    let settings = Loader::new().set("claim.max_interval", "1m 30s").set("purge.done_after", "never").load();
    let settings = settings.expect("valid");
    assert_eq!(settings.claim.max_interval, Duration::from_secs(90));
    assert_eq!(settings.purge.done_after, None);
}

#[cfg(all(feature = "mysql", feature = "postgres"))]
#[test]
fn the_prefix_is_part_of_the_tables_name() {
    const TABLE: &str = "billing.shop_outbox_event";
    let mut settings = Settings::default();
    settings.store.table = "billing.outbox_event".to_owned();
    settings.store.table_prefix = Some("shop_".to_owned());
    settings.store.url = Some("postgres://shop@localhost/shop".into());
    let options = settings.postgres_options().expect("valid");
    assert!(format!("{options:?}").contains(&format!("table: \"{TABLE}\"")), "{options:?}");
    settings.store.url = Some("mysql://shop@localhost/shop".into());
    let options = settings.mysql_options().expect("valid");
    assert!(format!("{options:?}").contains(&format!("table: \"{TABLE}\"")), "{options:?}");
}
