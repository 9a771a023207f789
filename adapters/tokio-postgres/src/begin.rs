use std::future::Future;

use futures_util::TryStreamExt as _;
use pillarbox_core::write::{Begin, Finish};
use tokio_postgres::{Error, SimpleQueryStream};

use crate::TokioPostgres;

impl<'a> Begin<TokioPostgres> for &'a mut tokio_postgres::Client {
    type Transaction = tokio_postgres::Transaction<'a>;
    type Error = Error;

    async fn begin(self) -> Result<tokio_postgres::Transaction<'a>, Error> {
        self.transaction().await
    }
}

impl<'a> Begin<TokioPostgres> for &'a mut deadpool_postgres::Client {
    type Transaction = deadpool_postgres::Transaction<'a>;
    type Error = Error;

    async fn begin(self) -> Result<deadpool_postgres::Transaction<'a>, Error> {
        self.transaction().await
    }
}

/// Fails in a transaction in which a statement has failed, even if its error was ignored, and where none is open any more,
/// because somebody has ended it by a statement of their own.
///
/// PostgreSQL answers the COMMIT of either with no error that the driver would tell: the outbox would deliver events that do
/// not exist.
pub(crate) const PROBE: &str = "SAVEPOINT pillarbox";

/// Commits in one round trip with the probe: both are sent before either is answered, in this order.
async fn probe_and_commit(
    probe: Result<SimpleQueryStream, Error>,
    commit: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let probed = async { probe?.try_for_each(|_| std::future::ready(Ok(()))).await };
    // The probe's error comes first: it names what the commit's answer hides.
    let (probed, committed) = futures_util::future::join(probed, commit).await;
    probed.and(committed)
}

impl Finish<TokioPostgres> for tokio_postgres::Transaction<'_> {
    type Error = Error;
    type Inner = Self;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit(self) -> Result<(), Error> {
        let probe = self.client().simple_query_raw(PROBE).await;
        probe_and_commit(probe, tokio_postgres::Transaction::commit(self)).await
    }

    async fn rollback(self) -> Result<(), Error> {
        tokio_postgres::Transaction::rollback(self).await
    }
}

impl Finish<TokioPostgres> for deadpool_postgres::Transaction<'_> {
    type Error = Error;
    type Inner = Self;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit(self) -> Result<(), Error> {
        let probe = self.client().simple_query_raw(PROBE).await;
        probe_and_commit(probe, deadpool_postgres::Transaction::commit(self)).await
    }

    async fn rollback(self) -> Result<(), Error> {
        deadpool_postgres::Transaction::rollback(self).await
    }
}
