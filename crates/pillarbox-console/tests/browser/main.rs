//! The console in a real browser, on SQLite, PostgreSQL and MariaDB: every page, every action, live figures, the keyboard, and what axe-core
//! says of their accessibility.
//!
//! It needs Chromium and its driver, which `scripts/setup` installs. With `PILLARBOX_SCREENSHOTS=FOLDER` it writes the pictures of the guide.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod browser;
mod database;
mod screenshots;
mod site;
mod visit;

use database::Database;

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    visit::everything(Database::Sqlite(file.to_str().expect("text").to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    pillarbox_programtest::with_postgres(|url| visit::everything(Database::Postgres(url))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_mariadb() {
    pillarbox_programtest::with_mysql(|url| visit::everything(Database::Mysql(url))).await;
}
