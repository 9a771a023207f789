use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Store;
use pillarbox_core::write::{Begin, Dialect};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::harness::ErrorOf;
use crate::invariants::Observed;
use crate::{Call, Harness};

/// The result of a test. The test asserts its own subject, and passes on whatever else goes wrong.
pub(crate) type Outcome = Result<(), BoxError>;

/// One test, on a database of its own.
pub(crate) struct Case<H> {
    pub(crate) name: &'static str,
    /// The part of the suite that it belongs to.
    pub(crate) kind: &'static str,
    /// True if everything in the process can stand still for it at once.
    pub(crate) one_thread: bool,
    /// True if it starts with the tables in place.
    pub(crate) migrated: bool,
    /// The capabilities it needs and the backend lacks.
    pub(crate) lacking: &'static [&'static str],
    pub(crate) test: fn(&Db<H>) -> LocalBoxFuture<'_, Outcome>,
}

/// The database of a test.
pub(crate) struct Db<H> {
    harness: Arc<H>,
    connected: Mutex<Vec<Arc<dyn Store>>>,
}

impl<H: Harness> Db<H> {
    /// Another store on the same tables with connections of its own, as another node has. It is closed after the test.
    pub(crate) async fn connect(&self) -> Result<Arc<dyn Store>, BoxError> {
        let store = self.harness.connect().await?;
        self.connected.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&store));
        Ok(store)
    }

    /// The source of transactions for handlers.
    pub(crate) fn transactions(&self) -> Transactions<H> {
        Transactions(Arc::clone(&self.harness))
    }

    /// The rows of these events as they stand now, beside the calls for them.
    pub(crate) async fn observed(&self, committed: &[Envelope], calls: Vec<Call>) -> Result<Observed, BoxError> {
        Observed::read(&*self.harness, committed, calls).await
    }
}

/// The source of transactions for handlers, which outlive the reference that a test has.
pub(crate) struct Transactions<H>(Arc<H>);

impl<H: Harness> Begin<H::Marker> for &Transactions<H> {
    type Transaction = H::Transaction;
    type Error = ErrorOf<H>;

    async fn begin(self) -> Result<H::Transaction, Self::Error> {
        self.0.source().begin().await
    }
}

impl<H> Deref for Db<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.harness
    }
}

/// No test waits for anything that takes this long: what it waits for will not happen.
const PATIENCE: Duration = Duration::from_secs(150);

/// Tests that run at once for each processor, if nothing else is asked for: they wait for leases and databases more than they work.
const TESTS_PER_PROCESSOR: usize = 4;

/// The arguments of a test binary, with the number of threads that the variable of Rust's own test programs asks for.
pub(crate) fn arguments() -> Arguments {
    let mut arguments = Arguments::from_args();
    let asked = std::env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(asked.unwrap_or(TESTS_PER_PROCESSOR * processors));
    arguments
}

impl<H: Harness> Case<H> {
    pub(crate) fn into_trial(self) -> Trial {
        trial(self.name, self.kind, self.lacking, move || self.run())
    }

    fn run(&self) -> Result<(), Failed> {
        // Two workers, so that what may run at the same time does.
        let runtime = match self.one_thread {
            true => Builder::new_current_thread().enable_all().build()?,
            false => Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        };
        runtime.block_on(self.on_a_fresh_database()).map_err(|error| Failed::from(explain(&*error)))
    }

    async fn on_a_fresh_database(&self) -> Outcome {
        let db = Db { harness: Arc::new(H::create().await?), connected: Mutex::default() };
        let test = async {
            if self.migrated {
                db.store().migrate().await?;
            }
            (self.test)(&db).await
        };
        // Caught, so that the database is removed after a failed assertion as well.
        let ended = AssertUnwindSafe(timeout(PATIENCE, test)).catch_unwind().await;
        let Db { harness, connected } = db;
        for store in connected.into_inner().unwrap_or_else(PoisonError::into_inner) {
            store.close().await;
        }
        harness.store().close().await;
        let destroyed = async { alone(harness).await?.destroy().await }.await;
        match ended {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(Err(_)) => Err(format!("it waited {PATIENCE:?} for something that did not happen").into()),
            Ok(Ok(outcome)) => outcome.and(destroyed),
        }
    }
}

/// The harness, once nothing of the test's has it any more: handlers may, for a moment after their outbox is gone.
async fn alone<H>(mut harness: Arc<H>) -> Result<H, BoxError> {
    for _ in 0..1000 {
        match Arc::try_unwrap(harness) {
            Ok(harness) => return Ok(harness),
            Err(shared) => harness = shared,
        }
        sleep(Duration::from_millis(5)).await;
    }
    Err("something of the test still has its database".into())
}

/// A test for the runner, which shows it as ignored where the backend lacks what it needs.
pub(crate) fn trial(
    name: &str,
    kind: &str,
    lacking: &[&str],
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let kind = match lacking {
        [] => kind.to_owned(),
        lacking => format!("{kind}, needs {}", lacking.join(", ")),
    };
    Trial::test(name, run).with_kind(kind).with_ignored_flag(!lacking.is_empty())
}

/// The parts of errors by which backends refuse a transaction instead of letting it wait for another one.
const CONTENTION: [&str; 5] =
    ["deadlock", "locked", "record has changed", "another open transaction", "was changed by another"];

/// The results of transactions at the same time, without those that the backend refuses since another one is in their way. On
/// PostgreSQL they wait instead.
///
/// # Errors
/// The first that failed for another reason.
pub(crate) fn unrefused<H: Harness, T>(db: &Db<H>, results: Vec<Result<T, BoxError>>) -> Result<Vec<T>, BoxError> {
    let waits = db.store().info().dialect == Dialect::POSTGRES;
    let is_refused = |error: &BoxError| {
        let text = explain(&**error).to_lowercase();
        !waits && CONTENTION.iter().any(|part| text.contains(part))
    };
    results.into_iter().filter(|result| !result.as_ref().is_err_and(is_refused)).collect()
}

/// An error with its causes.
pub(crate) fn explain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}\n  caused by: {cause}"))
}
