//! Transactions that wait between the completion of their event and their commit, for as long as a test wants.

use std::io::{Write as _, stdin, stdout};
use std::marker::PhantomData;

use pillarbox::backend::row::RowId;
use pillarbox::backend::write::{Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe};
use pillarbox::handle::HandlerTransaction;

/// A pool of a driver, whose transactions are held before their commit.
pub(crate) struct HeldPool<P>(pub(crate) P);

/// A transaction that is held before its commit.
pub(crate) struct Held<T>(T);

/// The marker of held transactions of an adapter.
pub(crate) struct Holding<M>(PhantomData<M>);

/// The transaction of a handler, like `Tx`, held before its commit.
pub(crate) type HeldTx<Tx> = <Tx as Hold>::Held;

pub(crate) trait Hold {
    type Held;
}

impl<T, M> Hold for HandlerTransaction<T, M> {
    type Held = HandlerTransaction<Held<T>, Holding<M>>;
}

impl<'p, P: Sync, M> Begin<Holding<M>> for &'p HeldPool<P>
where
    &'p P: Begin<M>,
    <&'p P as Begin<M>>::Transaction: Send,
{
    type Transaction = Held<<&'p P as Begin<M>>::Transaction>;
    type Error = <&'p P as Begin<M>>::Error;

    async fn begin(self) -> Result<Self::Transaction, Self::Error> {
        Ok(Held(Begin::begin(&self.0).await?))
    }
}

impl<T: Connection<M>, M> Connection<Holding<M>> for Held<T> {
    type Error = T::Error;

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn in_transaction(&mut self) -> Option<bool> {
        self.0.in_transaction()
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, T::Error>> + Send {
        self.0.insert(insert)
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, T::Error>> + Send {
        self.0.run(command)
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, T::Error>> + Send {
        self.0.read(lookup)
    }

    fn id(&self) -> ConnectionId {
        self.0.id()
    }
}

impl<T: Finish<M> + Send, M> Finish<Holding<M>> for Held<T> {
    type Error = T::Error;
    type Inner = T::Inner;
    const IS_ONLY_BORROWED: bool = T::IS_ONLY_BORROWED;

    fn commit_is_final(&self) -> bool {
        self.0.commit_is_final()
    }

    fn inner(&self) -> &T::Inner {
        self.0.inner()
    }

    fn inner_mut(&mut self) -> &mut T::Inner {
        self.0.inner_mut()
    }

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, T::Error> {
        // A runtime that is shutting down runs no such task, and nothing is left to be held.
        drop(tokio::task::spawn_blocking(told_to_go_on).await);
        self.0.commit_verified(probe).await
    }

    fn rollback(self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.0.rollback()
    }
}

/// Says that an event is completed and not committed, and waits until the test lets it go on.
fn told_to_go_on() {
    let mut output = stdout().lock();
    // A test that has gone away reads nothing, and lets everything go on.
    if writeln!(output, "completed").and_then(|()| output.flush()).is_ok() {
        drop(output);
        drop(stdin().read_line(&mut String::new()));
    }
}
