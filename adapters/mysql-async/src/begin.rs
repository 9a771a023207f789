use mysql_async::{Conn, Error, Pool, Transaction, TxOpts};
use pillarbox_core::write::{Begin, Finish};

use crate::MysqlAsync;
use crate::open::ensure_open;

impl Begin<MysqlAsync> for &Pool {
    type Transaction = Transaction<'static>;
    type Error = Error;

    async fn begin(self) -> Result<Transaction<'static>, Error> {
        self.start_transaction(TxOpts::default()).await
    }
}

impl<'a> Begin<MysqlAsync> for &'a mut Conn {
    type Transaction = Transaction<'a>;
    type Error = Error;

    async fn begin(self) -> Result<Transaction<'a>, Error> {
        self.start_transaction(TxOpts::default()).await
    }
}

impl Finish<MysqlAsync> for Transaction<'_> {
    type Error = Error;
    type Inner = Self;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    /// Commits, or fails if the server has already rolled the transaction back.
    async fn commit(mut self) -> Result<(), Error> {
        // The server answers COMMIT with success then, and the outbox would deliver events that do not exist.
        ensure_open(&mut self).await?;
        Transaction::commit(self).await
    }

    async fn rollback(self) -> Result<(), Error> {
        Transaction::rollback(self).await
    }
}
