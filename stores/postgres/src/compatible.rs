//! The requirements on a server and its tables, verified before anything is read or written. Other databases speak PostgreSQL's
//! protocol as well: one that answers a question about locks with nothing would have events passed over in silence.

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error::Failure;

const SERVER: &str = include_str!("../sql/server.sql");
const KINDS: &str = include_str!("../sql/kinds.sql");
const GUIDE: &str = "docs/scaling.md says what a database has to have";

/// Verifies that the server tells of the locks of other sessions.
pub(crate) async fn check_server(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let row = match transaction.query_typed_one(SERVER, &[]).await {
        Err(error) if error.code().is_some_and(is_lack) => {
            let problem = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            return Err(refused(&format!("the server cannot be asked for its locks: {problem}")));
        }
        answer => answer?,
    };
    let (server, tells_of_locks): (String, bool) = (row.try_get("server")?, row.try_get("tells_of_locks")?);
    if tells_of_locks {
        return Ok(());
    }
    // `PostgreSQL 15.3 on x86_64-pc-linux-gnu, compiled by …`, `CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built …)`
    let name = server.split([',', '(']).next().unwrap_or_default();
    let name = name.split(" on ").next().unwrap_or_default().trim();
    Err(refused(&format!(
        "this server, `{name}`, does not tell in `pg_locks` who holds a table, without which events that are committed late would be \
         passed over; use a server of PostgreSQL itself"
    )))
}

/// Verifies that each of the tables is one heap on this server.
pub(crate) async fn check_tables(transaction: &Transaction<'_>, tables: &[String]) -> Result<(), Failure> {
    let names = |name: String| name.replace('"', "");
    let rows = transaction.query_typed(KINDS, &[(&tables, Type::TEXT_ARRAY)]).await?;
    if let Some(row) = rows.first() {
        let (name, kind): (String, String) = (names(row.try_get("name")?), row.try_get("kind")?);
        let problem = match (&*kind, row.try_get("has_parts")?) {
            ("p", _) | ("r", true) => "is divided into parts".to_owned(),
            ("v", _) => "is a view".to_owned(),
            ("m", _) => "is a materialized view".to_owned(),
            ("f", _) => "is a foreign table".to_owned(),
            _ => format!("is kept by `{}`, not as a heap", row.try_get::<_, String>("method")?),
        };
        return Err(refused(&format!(
            "the table {name} {problem}, and rows are claimed by their place in one heap; make it an ordinary table"
        )));
    }
    let citus = transaction.query_typed_one("SELECT to_regclass('pg_dist_partition') IS NOT NULL", &[]).await?;
    if citus.try_get(0)? {
        let distributed =
            "SELECT name FROM unnest($1::text[]) AS name JOIN pg_dist_partition ON logicalrelid = to_regclass(name)";
        if let Some(row) = transaction.query_typed(distributed, &[(&tables, Type::TEXT_ARRAY)]).await?.first() {
            let name = names(row.try_get(0)?);
            return Err(refused(&format!(
                "the table {name} is distributed by Citus, and its locks are held on other servers; keep it as a local table, by \
                 `SELECT undistribute_table('{name}')`, or give each server an outbox of its own"
            )));
        }
    }
    Ok(())
}

/// Verifies that the user sees every row of the event table: rows that a policy hides would be passed over.
pub(crate) async fn check_visible(transaction: &Transaction<'_>, event: &str) -> Result<(), Failure> {
    let hidden = "SELECT row_security_active($1::text::regclass), current_user::text";
    let row = transaction.query_typed_one(hidden, &[(&event, Type::TEXT)]).await?;
    let (hidden, user): (bool, String) = (row.try_get(0)?, row.try_get(1)?);
    if hidden {
        let table = event.replace('"', "");
        return Err(Failure::Refused(
            StoreErrorKind::Config,
            format!(
                "row-level security hides rows of {table} from the user `{user}`, and deliveries would pass over them; let it see every row, by \
                 `ALTER ROLE {user} BYPASSRLS`"
            ),
        ));
    }
    Ok(())
}

/// True if a server does not know what was asked for, by the class of its code.
fn is_lack(code: &SqlState) -> bool {
    code != &SqlState::INSUFFICIENT_PRIVILEGE && ["42", "0A"].iter().any(|class| code.code().starts_with(class))
}

fn refused(problem: &str) -> Failure {
    Failure::Refused(StoreErrorKind::Config, format!("{problem}; {GUIDE}"))
}
