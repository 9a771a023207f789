use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Transaction};

/// True if the server says that a transaction is open; `None` after a failed statement, whose answer does not say.
pub(crate) fn is_open(transaction: &Transaction<'_>) -> Option<bool> {
    let answer = transaction.last_ok_packet()?;
    Some(answer.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
}

/// Fails if the server has rolled the transaction back by itself, as it does with one that lost a deadlock.
pub(crate) async fn ensure_open(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    if is_open(transaction).is_none() {
        transaction.ping().await?;
    }
    match is_open(transaction) {
        Some(true) => Ok(()),
        _ => Err(Error::Other(
            "the server has rolled the transaction back, after a deadlock or an error of that weight; begin a new one and \
             repeat all of it"
                .into(),
        )),
    }
}
