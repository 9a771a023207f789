//! A small order service: real transactions, some rolled back on purpose, a handler that writes receipts, and at the end
//! the database is asked whether every committed event was handled exactly once.

mod order;
mod postgres;
mod run;
mod shop;
mod sqlite;
mod summary;

use std::process::ExitCode;
use std::sync::Arc;

use pillarbox::store::TableName;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::address::Address;
use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::report;
use run::Run;
use shop::Shop;
use summary::Summary;

/// Runs the demo. Success is decided by the database: nothing lost, nothing twice, nothing that was rolled back.
pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    let shop = open(&Address::parse(&args.store)?).await?;
    let interrupt = CancellationToken::new();
    let mut signals = JoinSet::new();
    signals.spawn(cancel_on_ctrl_c(interrupt.clone()));
    let store = shop.store();
    if !args.json {
        report::note(&format!("the shop is in {} at {}", store.info().dialect, store.info().address));
    }
    store.migrate().await?;
    shop.create_tables().await?;
    let summary = Run::new(shop, args.orders, interrupt).go().await;
    store.close().await;
    let summary = summary?;
    report::print_either(args.json, &summary.json(), || summary.text())?;
    Ok(exit_code(&summary))
}

/// Relay and upkeep know MySQL; the shop does not.
const NO_MYSQL: &str = "names a MySQL database, on which the demo has no shop; use a SQLite file or a PostgreSQL URL";

async fn open(address: &Address) -> Result<Arc<dyn Shop>, Failure> {
    let table = TableName::parse(shop::TABLE)?;
    Ok(match address {
        Address::Sqlite(file) => Arc::new(sqlite::SqliteShop::open(file, &table).await?),
        Address::Postgres(url) => Arc::new(postgres::PostgresShop::open(url, &table).await?),
        Address::Mysql(_) => return Err(Failure::Service(NO_MYSQL)),
    })
}

async fn cancel_on_ctrl_c(interrupt: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        report::note("interrupted; finishing what is under way");
        interrupt.cancel();
    }
}

fn exit_code(summary: &Summary) -> ExitCode {
    const INTERRUPTED: u8 = 130;
    match summary {
        Summary { interrupted: true, .. } => ExitCode::from(INTERRUPTED),
        summary if summary.is_clean() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
