use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::observe::panic_message;

/// Runs a task without which a node would keep its lease and deliver nothing, or not all. Should it panic, `lost` is cancelled, as if the lease
/// had been: the node forgets what it holds, and it or another one begins anew.
pub(super) async fn vital(task: &'static str, lost: CancellationToken, work: impl Future) {
    if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
        if cfg!(simulated) {
            // There it is a violation, and the process ends by it.
            resume_unwind(panic);
        }
        let panic = panic_message(&*panic);
        tracing::error!(
            task,
            panic,
            "a task of this node has panicked, which is a bug; the node forgets what it holds and joins anew"
        );
        lost.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_lease_and_an_end_does_not() {
        let lost = CancellationToken::new();
        vital("test", lost.clone(), async {}).await;
        assert!(!lost.is_cancelled());
        vital("test", lost.clone(), async { panic!("the test's task") }).await;
        assert!(lost.is_cancelled());
    }
}
