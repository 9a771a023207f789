//! Handlers that work in the transaction in which their event becomes DONE: what they write happens exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{
    BoxFuture, Delivery, Failure, Handler as _, HandlerError, HandlerTransaction, Outcome as Decision, Path,
    in_transaction,
};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::write::Begin;
use pillarbox_engine::handlers::{Events, Registration, on_type};
use pillarbox_engine::run::Outbox;
use tokio::sync::Semaphore;

use super::setting::{settled, until, write};
use crate::events::{HOUR, columns, event, record};
use crate::harness::ErrorOf;
use crate::run::{Db, Outcome, Transactions};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

type Tx<H> = HandlerTransaction<<H as Harness>::Transaction, <H as Harness>::Marker>;

/// The type of the events that handlers write in their transactions.
const FOLLOW_UP: &str = "test.follow_up";
/// The type of the events that are handled in a transaction.
const TEST: &str = "test.event";

fn follow_up(of: &Delivery) -> Result<Envelope, BoxError> {
    Ok(Envelope::builder(FOLLOW_UP).payload_json(format!(r#"{{"of": "{}"}}"#, of.id())).build()?)
}

fn handled(key: &str) -> Result<Envelope, BoxError> {
    Ok(Envelope::builder(TEST).key(key).payload_json("{}").build()?)
}

/// A handler that writes a follow-up event in its transaction, and then does as `then` says.
fn following_up<H: Harness>(db: &Db<H>, then: impl AsyncThen + Clone) -> Registration {
    let handler = move |delivery: Delivery, mut tx: Tx<H>| {
        let then = then.clone();
        async move {
            delivery.outbox()?.write(&mut tx, follow_up(&delivery)?).await?;
            drop(tx);
            then.decide(delivery).await
        }
    };
    on_type(TEST, in_transaction(db.transactions(), handler))
}

/// The decision of a handler after it has written.
trait AsyncThen: Send + Sync + 'static {
    fn decide(&self, delivery: Delivery) -> impl Future<Output = Result<Decision, BoxError>> + Send;
}

#[derive(Clone)]
struct Done;

impl AsyncThen for Done {
    async fn decide(&self, _: Delivery) -> Result<Decision, BoxError> {
        Ok(Decision::Done)
    }
}

/// The event that a handler writes commits with its own, in every mode, and takes the hot path where there is one.
pub(super) async fn commits_with_its_event<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::builder(mode)
        .store(db.store())
        .handler(following_up(db, Done))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    let written = (0..20).map(|n| handled(&format!("key-{}", n % 3))).collect::<Result<Vec<_>, _>>()?;
    write(db, &outbox, &written).await?;
    recorder.wait_for_calls(20).await;
    settled(&*db.store()).await?;
    assert_eq!(recorder.calls().len(), 20, "one follow-up of each");
    let is_hot = recorder.calls().iter().any(|call| call.path == Path::Hot);
    assert_eq!(is_hot, matches!(mode, NodeMode::SingleNode | NodeMode::MultiNode), "{:?}", outbox.stats());
    for event in &written {
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts, row.locked_by), (1, 0, None));
    }
    outbox.shutdown().await;
    assert_eq!(outbox.stats().done, 40);
    Ok(())
}

#[derive(Clone)]
struct Reporting;

impl AsyncThen for Reporting {
    async fn decide(&self, delivery: Delivery) -> Result<Decision, BoxError> {
        Ok(Decision::delivered_as(format!("ledger/{}", delivery.attempt())))
    }
}

/// It is kept, and what the handler has written is committed.
pub(super) async fn a_handler_reports_a_position_in_its_transaction<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(db.store())
        .handler(following_up(db, Reporting))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    let event = handled("key")?;
    write(db, &outbox, std::slice::from_ref(&event)).await?;
    recorder.wait_for_calls(1).await;
    settled(&*db.store()).await?;
    let record = record(db, &event).await?;
    assert_eq!((record.status, record.delivered_as.as_deref()), (1, Some("ledger/1")));
    outbox.shutdown().await;
    assert_eq!((outbox.stats().done, recorder.calls().len()), (2, 1));
    Ok(())
}

/// The rows are deleted where delivered ones are, and what the handler has written takes the hot path all the same.
pub(super) async fn a_handlers_transaction_removes_its_event<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(db.store())
        .poll_interval(HOUR, HOUR)
        .delete_done(true)
        .handler(following_up(db, Done))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    recorder.wait_for_ends(1).await;
    settled(&*db.store()).await?;
    assert_eq!((db.columns(written.id().as_str()).await?, db.store().counts().await?.done), (None, 0));
    assert_eq!(recorder.calls().iter().map(|call| call.path).collect::<Vec<_>>(), [Path::Hot], "{:?}", outbox.stats());
    outbox.shutdown().await;
    Ok(())
}

#[derive(Clone, Default)]
struct InTurn(Arc<AtomicUsize>);

impl AsyncThen for InTurn {
    async fn decide(&self, _: Delivery) -> Result<Decision, BoxError> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not yet".into()),
            1 => Ok(Decision::Defer(Duration::from_millis(1))),
            #[expect(clippy::panic, reason = "as a handler of a user's might")]
            2 => panic!("a panic that a test asked for"),
            _ => Ok(Decision::Done),
        }
    }
}

/// A failure, a deferral and a panic roll back what was written; the attempt that succeeds writes it once.
pub(super) async fn a_failed_handlers_transaction_leaves_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, turns) = (Recorder::new(), InTurn::default());
    let outbox = super::setting::eager(db.store(), &recorder)?.handler(following_up(db, turns.clone())).start().await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    recorder.wait_for_calls(1).await;
    settled(&*db.store()).await?;
    assert_eq!((turns.0.load(Ordering::Relaxed), recorder.calls().len()), (4, 1));
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts, row.last_error), (1, 2, None));
    outbox.shutdown().await;
    Ok(())
}

/// A handler that gives its event up leaves nothing of what it wrote.
pub(super) async fn a_handler_that_gives_up_in_its_transaction_leaves_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    #[derive(Clone)]
    struct Dead;
    impl AsyncThen for Dead {
        async fn decide(&self, _: Delivery) -> Result<Decision, BoxError> {
            Ok(Decision::Dead("of no use".to_owned()))
        }
    }
    let recorder = Recorder::new();
    let outbox = super::setting::eager(db.store(), &recorder)?.handler(following_up(db, Dead)).start().await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    settled(&*db.store()).await?;
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.last_error.as_deref(), recorder.calls().len()), (3, Some("of no use"), 0));
    outbox.shutdown().await;
    Ok(())
}

/// A transaction that the handler has handed to somebody else is not committed, and the error says so.
pub(super) async fn a_handlers_transaction_that_is_kept_is_not_committed<H: Harness>(db: &Db<H>) -> Outcome {
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keeper = Arc::clone(&kept);
    let keep = move |_: Delivery, tx: Tx<H>| {
        *keeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(tx);
        std::future::ready(())
    };
    let outbox = Outbox::single_node(db.store())
        .max_attempts(1)
        .handler(on_type(TEST, in_transaction(db.transactions(), keep)))
        .start()
        .await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    // On a database of one writer nothing is recorded before the transaction ends.
    until(async || Ok(kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().is_some())).await?;
    settled(&*db.store()).await?;
    let row = columns(db, &written).await?;
    let error = row.last_error.unwrap_or_default();
    assert!(row.status == 3 && error.contains("kept its transaction"), "{}: {error}", row.status);
    outbox.shutdown().await;
    Ok(())
}

/// A transaction that cannot be committed is the database's failure, not the handler's: the last attempt is still to come, and no fallback
/// decides. Here the handler has ended it by SQL.
pub(super) async fn a_handlers_transaction_that_is_not_committed_counts_no_attempt<H: Harness>(db: &Db<H>) -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let handler = move |_: Delivery, mut tx: Tx<H>| {
        let seen = Arc::clone(&seen);
        async move {
            if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                H::execute_in(&mut tx, "ROLLBACK").await?;
            }
            Ok::<_, BoxError>(())
        }
    };
    let fallback = Recorder::new();
    let rescued = fallback.clone();
    let outbox = Outbox::single_node(db.store())
        .max_attempts(1)
        .fallback(move |delivery: Delivery, _: Failure| {
            let rescued = rescued.clone();
            async move { rescued.handle(delivery).await }
        })
        .handler(on_type(TEST, in_transaction(db.transactions(), handler)))
        .start()
        .await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    settled(&*db.store()).await?;
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts, calls.load(Ordering::SeqCst)), (1, 0, 2));
    assert!(fallback.calls().is_empty(), "no fallback was called");
    outbox.shutdown().await;
    Ok(())
}

/// The source of transactions of a pool with a mistake in it: a number of begins panic.
struct Panicking<H: Harness> {
    transactions: Transactions<H>,
    begins: Arc<AtomicUsize>,
    panics: usize,
}

impl<H: Harness> Begin<H::Marker> for &Panicking<H> {
    type Transaction = H::Transaction;
    type Error = ErrorOf<H>;

    async fn begin(self) -> Result<H::Transaction, Self::Error> {
        let before = self.begins.fetch_add(1, Ordering::SeqCst);
        assert!(before >= self.panics, "a panic that a test asked for");
        self.transactions.begin().await
    }
}

/// Until the transaction has begun the handler has not been called, so no attempt is counted. A begin that succeeds at last is as good
/// as the first.
pub(super) async fn a_begin_that_panics_is_tried_again<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, begins) = (Recorder::new(), Arc::<AtomicUsize>::default());
    let source = Panicking { transactions: db.transactions(), begins: Arc::clone(&begins), panics: 2 };
    let handler = recording(&recorder);
    let outbox =
        Outbox::single_node(db.store()).handler(on_type(TEST, in_transaction(source, handler))).start().await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    settled(&*db.store()).await?;
    let row = columns(db, &written).await?;
    let calls = recorder.calls().len();
    assert_eq!((row.status, row.attempts, begins.load(Ordering::SeqCst), calls), (1, 0, 3, 1));
    outbox.shutdown().await;
    Ok(())
}

/// A stop does not wait for a begin that fails again and again: the event is left to the next owner, untouched.
pub(super) async fn a_begin_that_fails_holds_up_no_stop<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, begins) = (Recorder::new(), Arc::<AtomicUsize>::default());
    let source = Panicking { transactions: db.transactions(), begins: Arc::clone(&begins), panics: usize::MAX };
    let outbox = Outbox::single_node(db.store())
        .drain_timeout(Duration::from_secs(600))
        .handler(on_type(TEST, in_transaction(source, recording(&recorder))))
        .start()
        .await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    until(async || Ok(begins.load(Ordering::SeqCst) > 0)).await?;
    // The test as a whole is given less time than the drain.
    outbox.shutdown().await;
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts, recorder.calls().len()), (0, 0, 0));
    let next = Outbox::single_node(db.store())
        .handler(on_type(TEST, in_transaction(db.transactions(), recording(&recorder))))
        .start()
        .await?;
    settled(&*db.store()).await?;
    assert_eq!(recorder.calls().len(), 1);
    next.shutdown().await;
    Ok(())
}

/// In order, what waits behind it is left to the next owner as well.
pub(super) async fn a_begin_that_fails_is_not_overtaken_at_a_stop<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, begins) = (Recorder::new(), Arc::<AtomicUsize>::default());
    let source = Panicking { transactions: db.transactions(), begins: Arc::clone(&begins), panics: usize::MAX };
    let written = vec![event()?, Envelope::json("test.plain", "{}")?];
    let seqs = db.write(written).await?;
    let outbox = Outbox::ordered(db.store())
        .drain_timeout(Duration::from_secs(600))
        .handler(on_type(TEST, in_transaction(source, recording(&recorder))))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    until(async || Ok(begins.load(Ordering::SeqCst) > 0)).await?;
    outbox.shutdown().await;
    assert!(recorder.calls().is_empty(), "{:?}", recorder.calls());
    let next = Outbox::ordered(db.store())
        .handler(on_type(TEST, in_transaction(db.transactions(), recording(&recorder))))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    settled(&*db.store()).await?;
    assert_eq!(recorder.calls().iter().map(|call| call.seq).collect::<Vec<_>>(), seqs);
    next.shutdown().await;
    Ok(())
}

/// A handler that hands each delivery to `recorder`.
pub(super) fn recording<T: Send + 'static>(
    recorder: &Recorder,
) -> impl Fn(Delivery, T) -> BoxFuture<'static, Result<Decision, HandlerError>> + Send + Sync + 'static {
    let recorder = recorder.clone();
    move |delivery: Delivery, tx: T| {
        let recorder = recorder.clone();
        Box::pin(async move {
            drop(tx);
            recorder.handle(delivery).await
        })
    }
}

/// The handler runs on while its node is evicted and another one delivers the event: its transaction is rolled back.
pub(super) async fn a_stale_owners_transaction_is_rolled_back<H: Harness>(db: &Db<H>) -> Outcome {
    #[derive(Clone)]
    struct FirstWaits {
        first: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }
    impl AsyncThen for FirstWaits {
        async fn decide(&self, _: Delivery) -> Result<Decision, BoxError> {
            if self.first.fetch_add(1, Ordering::SeqCst) == 0 {
                drop(self.gate.acquire().await);
            }
            Ok(Decision::Done)
        }
    }
    let then = FirstWaits { first: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
    let recorder = Recorder::new();
    let store = FaultyStore::new(db.store());
    let outbox = Outbox::single_node(store.clone())
        .handler(following_up(db, then.clone()))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    until(async || Ok(then.first.load(Ordering::SeqCst) == 1)).await?;
    // It does not hear that it is not the owner any more.
    store.set(Operation::Renew, Fault::Unreachable);
    store.set(Operation::Acquire, Fault::Unreachable);
    for node in db.store().nodes().await? {
        db.expire(&node.node).await?;
    }
    let second = Outbox::single_node(db.connect().await?)
        .handler(following_up(db, then.clone()))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    until(async || Ok(columns(db, &written).await?.status == 1)).await?;
    then.gate.add_permits(1);
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    recorder.wait_for_ends(1).await;
    settled(&*db.store()).await?;
    second.shutdown().await;
    // Rows, not calls: until it hears of the other owner, the stale one may deliver the follow-up as well.
    assert_eq!((then.first.load(Ordering::SeqCst), db.store().counts().await?.done), (2, 2), "two calls, one effect");
    Ok(())
}

/// A transaction begins only when the verdict on the earlier event of its key is recorded, which after a crash would be delivered again behind it.
pub(super) async fn waits_for_earlier_verdicts<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let store = FaultyStore::new(db.store());
    let committing = Recorder::new();
    let seen = committing.clone();
    let handler = move |delivery: Delivery, tx: Tx<H>| {
        let seen = seen.clone();
        async move {
            drop(tx);
            seen.handle(delivery).await
        }
    };
    let earlier = Recorder::new();
    let outbox = Outbox::builder(mode)
        .store(store.clone())
        .handler(on_type(TEST, in_transaction(db.transactions(), handler)))
        .handler(on_type(Events::Others, earlier.clone()))
        .start()
        .await?;
    store.set(Operation::Settle, Fault::Unreachable);
    let first = Envelope::builder("test.earlier").key("key").payload_json("{}").build()?;
    write(db, &outbox, &[first, handled("key")?]).await?;
    store.wait_for_faults(Operation::Settle, 5).await;
    assert!(committing.calls().is_empty(), "it would overtake the verdict on the first");
    store.set(Operation::Settle, Fault::None);
    settled(&*db.store()).await?;
    assert_eq!((earlier.calls().len(), committing.calls().len()), (1, 1));
    outbox.shutdown().await;
    Ok(())
}
