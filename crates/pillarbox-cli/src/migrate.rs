use std::process::ExitCode;

use pillarbox::error::StoreErrorKind;
use pillarbox::{Store, TableName};
use serde::Serialize;

use crate::args::MigrateArgs;
use crate::failure::Failure;
use crate::store;
use pillarbox_program::address::Address;
use pillarbox_program::report;

/// Creates or upgrades the tables, checks if that is due, or prints the SQL for it.
pub(crate) async fn run(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let (address, table) = (Address::parse(&args.target.store)?, store::table(&args.target)?);
    if args.print {
        return print(args, &store::migration_sql(&address, &table)?);
    }
    if args.check {
        let store = store::at(&args.target).await?;
        let checked = check(args, &*store).await;
        store.close().await;
        return checked;
    }
    if let Some(note) = creation(&address, &table) {
        report::note(&note);
    }
    let store = store::open(&address, &table).await?;
    let migrated = store.migrate().await;
    store.close().await;
    migrated?;
    succeed(args, &*store, "ready")
}

/// A note about the schema or database that may be created beside the tables, if the table's name has one.
fn creation(address: &Address, table: &TableName) -> Option<String> {
    let kind = match address {
        Address::Sqlite(_) => return None,
        Address::Postgres(_) => "schema",
        Address::Mysql(_) => "database",
    };
    Some(format!("creating the {kind} `{}`, unless it is there", table.schema()?))
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    store: String,
    table: &'a str,
    up_to_date: bool,
    problem: Option<String>,
}

impl<'a> Json<'a> {
    fn new(store: &'a dyn Store, problem: Option<String>) -> Self {
        let info = store.info();
        Self {
            store: format!("{} {}", info.dialect, info.address),
            table: &info.table,
            up_to_date: problem.is_none(),
            problem,
        }
    }
}

/// Fails where a service would refuse to start.
async fn check(args: &MigrateArgs, store: &dyn Store) -> Result<ExitCode, Failure> {
    match store.check().await {
        Ok(()) => succeed(args, store, "up to date"),
        Err(error) if args.target.json && error.kind() == StoreErrorKind::Schema => {
            let problem = Failure::of_check(error, &args.target).to_string();
            report::print(&serde_json::to_string(&Json::new(store, Some(problem)))?)?;
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(Failure::of_check(error, &args.target)),
    }
}

fn succeed(args: &MigrateArgs, store: &dyn Store, state: &str) -> Result<ExitCode, Failure> {
    let info = store.info();
    report::print_either(args.target.json, &Json::new(store, None), || {
        format!("{} is {state} in {} at {}", info.table, info.dialect, info.address)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &MigrateArgs, sql: &str) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Sql<'a> {
        table: &'a str,
        sql: &'a str,
    }
    report::print_either(args.target.json, &Sql { table: &args.target.table, sql }, || sql.trim_end().to_owned())?;
    Ok(ExitCode::SUCCESS)
}
