use std::future::Future;

use futures_util::TryStreamExt as _;
use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Finish, Probe};
use tokio_postgres::{Error, SimpleQueryMessage, SimpleQueryStream};

use crate::TokioPostgres;

impl<'a> Begin<TokioPostgres> for &'a mut tokio_postgres::Client {
    type Transaction = tokio_postgres::Transaction<'a>;
    type Error = Error;

    /// A transaction that was begun on the client by executing the text `BEGIN` is not seen: the server only warns of the second `BEGIN`, and the
    /// guard's commit or rollback ends that transaction.
    async fn begin(self) -> Result<tokio_postgres::Transaction<'a>, Error> {
        self.transaction().await
    }
}

impl<'a> Begin<TokioPostgres> for &'a mut deadpool_postgres::Client {
    type Transaction = deadpool_postgres::Transaction<'a>;
    type Error = Error;

    /// As for a [`tokio_postgres::Client`]: a transaction that was begun by executing the text `BEGIN` is not seen, and the guard ends it.
    async fn begin(self) -> Result<deadpool_postgres::Transaction<'a>, Error> {
        self.transaction().await
    }
}

/// Fails in a transaction in which a statement has failed, even if its error was ignored, and where no transaction is open any more,
/// because a statement of the user's own has ended it.
///
/// PostgreSQL answers the COMMIT of either with no error that the driver would tell: the outbox would deliver events that do
/// not exist.
const STILL_OPEN: &str = "SAVEPOINT pillarbox";

/// The statements before `COMMIT`, as one text that is planned for the table as it is now.
pub(crate) fn before_commit(probe: &Probe) -> String {
    match &probe.sql {
        Some(sql) => format!("{STILL_OPEN}; {sql}"),
        None => STILL_OPEN.to_owned(),
    }
}

/// The rows that a probe has found, if `message` is one.
pub(crate) fn row_id(message: &SimpleQueryMessage) -> Option<RowId> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let event_id = EventId::from_stored(row.get(1)?);
    Some(RowId { seq: row.get(0)?.parse().ok()?, event_id, handler: row.get(2).map(Box::from) })
}

/// Commits in one round trip with the probe: both are sent before either is answered, in this order.
async fn probe_and_commit(
    probe: Result<SimpleQueryStream, Error>,
    commit: impl Future<Output = Result<(), Error>>,
) -> Result<Vec<RowId>, Error> {
    let probed = async {
        let keys = probe?.try_filter_map(|message| std::future::ready(Ok(row_id(&message))));
        keys.try_collect::<Vec<_>>().await
    };
    // The probe's error comes first: it names what the commit's answer hides.
    let (probed, committed) = futures_util::future::join(probed, commit).await;
    let found = probed?;
    committed.map(|()| found)
}

impl Finish<TokioPostgres> for tokio_postgres::Transaction<'_> {
    type Error = Error;
    type Inner = Self;
    const IS_ONLY_BORROWED: bool = true;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, Error> {
        let probe = self.client().simple_query_raw(&before_commit(probe)).await;
        probe_and_commit(probe, tokio_postgres::Transaction::commit(self)).await
    }

    async fn rollback(self) -> Result<(), Error> {
        tokio_postgres::Transaction::rollback(self).await
    }
}

impl Finish<TokioPostgres> for deadpool_postgres::Transaction<'_> {
    type Error = Error;
    type Inner = Self;
    const IS_ONLY_BORROWED: bool = true;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, Error> {
        let probe = self.client().simple_query_raw(&before_commit(probe)).await;
        probe_and_commit(probe, deadpool_postgres::Transaction::commit(self)).await
    }

    async fn rollback(self) -> Result<(), Error> {
        deadpool_postgres::Transaction::rollback(self).await
    }
}
