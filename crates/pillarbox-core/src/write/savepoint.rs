use super::{Action, Command, Connection, Dialect, Statement, WriteError};

/// A savepoint before a write of several statements, on a database on which the transaction goes on after one has failed: without it, what the
/// statements before that one have written would be committed, although the write has failed.
#[derive(Debug)]
pub(super) struct Savepoint {
    is_set: bool,
}

impl Savepoint {
    /// Sets one where it is needed: for a write that inserts by `several` statements.
    pub(super) async fn before<M, C: Connection<M>>(
        connection: &mut C,
        several: bool,
    ) -> Result<Self, WriteError<C::Error>> {
        let is_set = several && connection.dialect().goes_on_after_errors();
        if is_set {
            run(connection, "SAVEPOINT pillarbox_write").await.map_err(WriteError::Database)?;
        }
        Ok(Self { is_set })
    }

    /// Undoes the write if it has failed.
    pub(super) async fn after<M, C: Connection<M>, T>(
        self,
        connection: &mut C,
        written: Result<T, WriteError<C::Error>>,
    ) -> Result<T, WriteError<C::Error>> {
        if !self.is_set {
            return written;
        }
        if written.is_err() {
            // If this fails as well, the connection is lost, or the database has rolled back the whole transaction.
            let _ = run(connection, "ROLLBACK TO SAVEPOINT pillarbox_write").await;
        }
        // On MySQL the next one of that name takes its place, which saves a round trip; on SQLite they would pile up.
        if connection.dialect() == Dialect::SQLITE {
            let released = run(connection, "RELEASE SAVEPOINT pillarbox_write").await;
            return written.and_then(|written| released.map(|_| written).map_err(WriteError::Database));
        }
        written
    }
}

async fn run<M, C: Connection<M>>(connection: &mut C, sql: &str) -> Result<u64, C::Error> {
    let statement = Statement { sql: sql.into(), binds: Vec::new(), reusable: false };
    connection.run(&Command { action: Action::Savepoint, statements: vec![statement] }).await
}
