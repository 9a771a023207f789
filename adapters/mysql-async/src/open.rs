use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Transaction};

/// True if the server says that a transaction is open; `None` after a failed statement, whose answer does not say.
pub(crate) fn is_open(connection: &Conn) -> Option<bool> {
    let answer = connection.last_ok_packet()?;
    Some(answer.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
}

/// Fails if the server has ended the transaction: it rolls back one that lost a deadlock, and commits one in which a statement such as DDL is
/// run. From the connection the two cannot be told apart.
pub(crate) async fn ensure_open(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    if is_open(transaction).is_none() {
        transaction.ping().await?;
    }
    match is_open(transaction) {
        Some(true) => Ok(()),
        _ => Err(Error::Other(
            "no transaction is open: the server has rolled it back, as after a deadlock, or a statement such as DDL has \
             committed it; see what is there before you repeat anything, and begin a new one"
                .into(),
        )),
    }
}
