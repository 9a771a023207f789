//! The question of a guard's commit: which of its rows are still there. It costs the database something, and is asked only where some may be gone.

use std::future::ready;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::{Memory, MemoryError, MemoryStore, MemoryTransaction};
use tokio::task::yield_now;
use tokio::time::sleep;

/// The number of rows that each commit asked for.
type Asked = Arc<Mutex<Vec<usize>>>;

struct Asking;

/// A transaction that notes what its commit is asked, of a driver whose transactions are only borrowed, or can be kept.
struct Noting<const IS_ONLY_BORROWED: bool> {
    inner: MemoryTransaction,
    asked: Asked,
}

impl<const B: bool> Connection<Asking> for Noting<B> {
    type Error = MemoryError;

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, MemoryError> {
        // A driver waits for its database, and the write can be dropped meanwhile.
        yield_now().await;
        Connection::<Memory>::insert(&mut self.inner, insert).await
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, MemoryError>> + Send {
        Connection::<Memory>::run(&mut self.inner, command)
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, MemoryError>> + Send {
        Connection::<Memory>::read(&mut self.inner, lookup)
    }

    fn id(&self) -> ConnectionId {
        self.inner.id()
    }
}

impl<const B: bool> Finish<Asking> for Noting<B> {
    type Error = MemoryError;
    type Inner = MemoryTransaction;
    const IS_ONLY_BORROWED: bool = B;

    fn inner(&self) -> &MemoryTransaction {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut MemoryTransaction {
        &mut self.inner
    }

    fn commit_verified(self, probe: &Probe) -> impl Future<Output = Result<Vec<RowId>, MemoryError>> + Send {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(probe.rows.len());
        Finish::<Memory>::commit_verified(self.inner, probe)
    }

    fn rollback(self) -> impl Future<Output = Result<(), MemoryError>> + Send {
        Finish::<Memory>::rollback(self.inner)
    }
}

struct Source<'a, const B: bool>(&'a MemoryStore, Asked);

impl<const B: bool> Begin<Asking> for Source<'_, B> {
    type Transaction = Noting<B>;
    type Error = MemoryError;

    fn begin(self) -> impl Future<Output = Result<Noting<B>, MemoryError>> + Send {
        ready(Ok(Noting { inner: self.0.begin(), asked: self.1 }))
    }
}

/// The steps of a transaction.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The driver's side of it is borrowed.
    Lend,
    /// An event is written on the guard.
    Write,
    /// An event is written on the driver's side.
    WriteWithin,
    /// A write on the guard fails.
    Fail,
    /// A write on the guard is dropped half-way.
    Drop,
}

/// Runs the steps, commits, and returns how many rows the commit asked for, and whether all events were to be delivered from memory.
async fn run<const B: bool>(steps: &[Step]) -> Result<(usize, bool), BoxError> {
    let (store, asked) = (MemoryStore::new(), Asked::default());
    let outbox = Outbox::single_node(store.clone()).handle_all(|_: Delivery| ready(())).start().await?;
    let event = || Envelope::json("order.placed", "{}");
    let taken = event()?;
    let mut first = store.begin();
    outbox.write(&mut first, taken.clone()).await?;
    first.commit();
    while outbox.stats().done < 1 {
        sleep(Duration::from_millis(1)).await;
    }

    let mut guard = outbox.begin(Source::<B>(&store, Arc::clone(&asked))).await?;
    let mut written = 0_u64;
    for step in steps {
        match step {
            Step::Lend => guard.savepoint("a"),
            Step::Write => written += outbox.write(&mut guard, event()?).await?.len() as u64,
            Step::WriteWithin => written += outbox.write(&mut *guard, event()?).await?.len() as u64,
            Step::Drop => {
                let dropped = pin!(outbox.write(&mut guard, event()?)).now_or_never();
                assert!(dropped.is_none(), "it waits for the database");
            }
            Step::Fail => assert!(outbox.write(&mut guard, taken.clone()).await.is_err(), "its id is taken"),
        }
    }
    guard.commit().await?;
    // What is in memory is delivered first.
    outbox.shutdown().await;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((asked.into_iter().sum(), outbox.stats().hot == written))
}

#[tokio::test]
async fn a_commit_asks_for_the_rows_of_a_guard_only_if_some_may_be_gone() -> Result<(), BoxError> {
    use Step::{Drop, Fail, Lend, Write, WriteWithin};
    // The rows asked for of a driver whose transactions are only borrowed, and of any other.
    for (steps, borrowed, any) in [
        (&[Write][..], 0, 1),
        (&[Write, Write], 0, 2),
        (&[Lend, Write], 0, 1),
        (&[Lend, Write, Write], 0, 2),
        (&[Write, Lend], 1, 1),
        (&[Write, Lend, Write], 2, 2),
        (&[WriteWithin], 1, 1),
        (&[WriteWithin, Write], 2, 2),
        (&[Write, Fail], 1, 1),
        (&[Fail, Write], 1, 1),
        (&[Write, Drop], 1, 1),
        (&[Drop, Write], 1, 1),
    ] {
        assert_eq!(run::<true>(steps).await?, (borrowed, true), "{steps:?}");
        assert_eq!(run::<false>(steps).await?, (any, true), "{steps:?}");
    }
    Ok(())
}
