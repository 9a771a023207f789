use std::error::Error;
use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use pillarbox_core::error::BoxError;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::PublisherHarness;
use crate::run::{Outcome, explain, trial};

/// No test waits for anything that takes this long: what it waits for will not happen.
const PATIENCE: Duration = Duration::from_secs(90);

/// One test.
pub(super) struct Case<H> {
    pub(super) name: &'static str,
    /// The capabilities it needs and the broker lacks.
    pub(super) lacking: &'static [&'static str],
    pub(super) test: for<'a> fn(&'a H) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>,
}

/// The state that all tests of a run share: the broker, and the runtime that its harness lives in.
pub(super) struct Suite<H> {
    runtime: Runtime,
    /// Made by the first test, so that listing tests starts no broker.
    harness: OnceCell<H>,
}

impl<H: PublisherHarness> Suite<H> {
    pub(super) fn new() -> std::io::Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Arc::new(Self { runtime, harness: OnceCell::new() }))
    }

    /// Stops the broker, if one was started.
    pub(super) fn stop(self: Arc<Self>) -> Outcome {
        // The tests are over, and their clones gone with them.
        let Some(suite) = Arc::into_inner(self) else { return Ok(()) };
        suite.harness.into_inner().map_or(Ok(()), |harness| suite.runtime.block_on(harness.stop()))
    }

    /// Ends the run before or after its tests.
    pub(super) fn refuse(error: &(dyn Error + 'static)) -> ExitCode {
        // Nothing is left to be done if even that cannot be said.
        drop(writeln!(std::io::stderr(), "error: {}", explain(error)));
        ExitCode::FAILURE
    }
}

impl<H: PublisherHarness> Case<H> {
    pub(super) fn into_trial(self, suite: &Arc<Suite<H>>) -> Trial {
        let suite = Arc::clone(suite);
        trial(self.name, "publisher", self.lacking, move || self.run(&suite))
    }

    fn run(&self, suite: &Suite<H>) -> Result<(), Failed> {
        let test = async {
            let harness = suite.harness.get_or_try_init(H::start).await?;
            let impatient = |_| format!("it waited {PATIENCE:?} for something that did not happen");
            timeout(PATIENCE, (self.test)(harness)).await.map_err(impatient)?
        };
        suite.runtime.block_on(test).map_err(|error: BoxError| Failed::from(explain(&*error)))
    }
}
