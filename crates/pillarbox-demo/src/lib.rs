//! A small order service: real transactions, some rolled back on purpose, a handler that writes receipts, and a final
//! check of the database that every committed event was handled exactly once.

mod order;
#[cfg(feature = "postgres")]
mod postgres;
mod run;
mod shop;
mod sqlite;
mod summary;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pillarbox::TableName;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use pillarbox_program::address::Address;
use pillarbox_program::failure::Failure;
use pillarbox_program::report;
use pillarbox_program::signals::INTERRUPTED;
use run::Run;
use shop::Shop;
use summary::Summary;

/// The options of the demo.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The database: `sqlite://PATH`, `PATH.db`, or `postgres://USER@HOST/DATABASE` if the program was built for it.
    #[arg(long, value_name = "URL", env = "PILLARBOX_STORE", hide_env_values = true)]
    #[arg(default_value = "sqlite://pillarbox-demo.db")]
    pub store: String,
    /// Orders to place; 0 only delivers the events that an earlier run has left.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub orders: u32,
    /// Print one line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// Runs the demo. The database decides about success: no event lost, delivered twice, or delivered after a rollback.
///
/// # Errors
/// If the database fails, or another process delivers from it.
pub async fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
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
    report::print_either(args.json, &summary, || summary.text())?;
    Ok(exit_code(&summary))
}

/// The relay and the commands of operators support MySQL; the shop does not.
const NO_MYSQL: &str = "names a MySQL database, on which the demo has no shop; use a SQLite file or a PostgreSQL URL";

#[cfg(not(feature = "postgres"))]
const NO_POSTGRES: &str = "names a PostgreSQL database, for which this program was not built; use a SQLite file, or `cargo run --release -p pillarbox-demo --features postgres`";

async fn open(address: &Address) -> Result<Arc<dyn Shop>, Failure> {
    let table = TableName::parse(shop::TABLE)?;
    Ok(match address {
        Address::Sqlite(file) => Arc::new(sqlite::SqliteShop::open(file, &table).await?),
        #[cfg(feature = "postgres")]
        Address::Postgres(url) => Arc::new(postgres::PostgresShop::open(url, &table).await?),
        #[cfg(not(feature = "postgres"))]
        Address::Postgres(_) => return Err(Failure::Service(NO_POSTGRES)),
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
    match summary {
        Summary { interrupted: true, .. } => ExitCode::from(INTERRUPTED),
        summary if summary.is_clean() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
