//! The console, for the outbox of one database.

use std::process::ExitCode;
use std::sync::Arc;

use pillarbox_console::{Console, Source};
use pillarbox_doctor::Doctor;
use pillarbox_program::report;
use pillarbox_program::signals::Signals;
use pillarbox_relay::{ConsoleServer, ConsoleSettings};
use serde::Serialize;

use crate::args::ConsoleArgs;
use crate::failure::Failure;
use crate::store;

/// The line of JSON, once the console is served. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json {
    address: String,
}

/// Serves the console until a signal stops it.
pub(crate) async fn run(args: ConsoleArgs) -> Result<ExitCode, Failure> {
    let ConsoleArgs {
        target,
        listen,
        password_file,
        read_password_file,
        users_file,
        read_only,
        mask_payloads,
        trace_link,
    } = args;
    let settings =
        ConsoleSettings { listen, password_file, read_password_file, users_file, read_only, mask_payloads, trace_link };
    let access = settings.access().map_err(Failure::Console)?;
    let mut signals = Signals::listen_with_hangup().map_err(Failure::of_system("listen for signals"))?;
    let store = store::existing(&target).await?;
    let name = source_name(&store.info().address, &store.info().table);
    let doctor = Doctor::new().store(&name, Arc::clone(&store));
    let source = Source::of_store(&name, Arc::clone(&store)).examined_by(doctor);
    let console = settings.console(Console::new(access).source(source));
    let server = match ConsoleServer::open(listen).await {
        Ok(server) => server,
        Err(error) => {
            store.close().await;
            return Err(Failure::ConsoleAddress(error));
        }
    };
    let address = format!("http://{}/", server.address());
    report::print_either(target.json, &Json { address: address.clone() }, || format!("The console is at {address}"))?;
    let serving = server.serve(console);
    signals.next().await;
    serving.close().await;
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

/// The name of the outbox in addresses and titles, which tells one database from another: `shop.outbox_event`.
fn source_name(address: &str, table: &str) -> String {
    let database = address.rsplit('/').next().unwrap_or_default();
    let database = database.split(['.', '?']).next().filter(|name| !name.is_empty());
    database.map_or_else(|| table.to_owned(), |database| format!("{database}.{table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_is_named_by_its_database_and_table() {
        let name = |address| source_name(address, "outbox_event");
        assert_eq!(name("db:5432/shop"), "shop.outbox_event");
        assert_eq!(name("/var/lib/shop/orders.db"), "orders.outbox_event");
        assert_eq!(name(""), "outbox_event");
    }
}
