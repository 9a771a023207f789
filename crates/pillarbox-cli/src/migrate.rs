use std::process::ExitCode;

use pillarbox::Store as _;
use pillarbox::store::TableName;

use crate::address::Address;
use crate::args::MigrateArgs;
use crate::failure::Failure;
use crate::{report, store};

/// Creates or upgrades the tables, or prints the SQL that would.
pub(crate) async fn run(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let address = Address::parse(&args.store)?;
    let table = TableName::parse(&args.table)?;
    if args.print {
        report::print(store::migration_sql(&address, &table)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = store::open(&address, &table).await?;
    store.migrate().await?;
    let info = store.info();
    report::print(&format!("{} is ready in {} at {}", info.table, info.dialect, info.address))?;
    store.close().await;
    Ok(ExitCode::SUCCESS)
}
