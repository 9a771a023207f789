use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pillarbox_core::handle::BoxFuture;

use crate::observe::panic_message;

/// Calls the user's code and waits for it; a panic, of the call or of its future, comes back as what it said.
///
/// A panic unwinds through the user's own state only: the future is dropped and never polled again. Where it is dropped before its end,
/// as when its time is up, a panic of its destructors is logged, and goes no further: it would end the worker.
pub(crate) async fn guarded<'a, T>(call: impl FnOnce() -> BoxFuture<'a, T>) -> Result<T, String> {
    let called = catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic))?;
    Guarded(Some(called)).await
}

/// A future of the user's code that lets no panic out; `None` once it has ended.
struct Guarded<'a, T>(Option<BoxFuture<'a, T>>);

impl<T> Guarded<'_, T> {
    /// Drops the future; an error is the message of a panic.
    fn discard(&mut self) -> Result<(), String> {
        let call = self.0.take();
        catch_unwind(AssertUnwindSafe(|| drop(call))).map_err(|panic| panic_message(&*panic))
    }
}

impl<T> Future for Guarded<'_, T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(self.discard().map(|()| answer)),
            Err(panic) => {
                // What it says after the panic is of no interest.
                let _said = self.discard();
                Poll::Ready(Err(panic_message(&*panic)))
            }
        }
    }
}

impl<T> Drop for Guarded<'_, T> {
    fn drop(&mut self) {
        if let Err(panic) = self.discard() {
            tracing::error!(panic, "a call of a handler, or of what runs around it, panicked when it was dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// Panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("boom");
        }
    }

    #[tokio::test]
    async fn no_panic_gets_out() {
        assert_eq!(guarded(|| Box::pin(ready(1))).await, Ok(1));
        assert_eq!(guarded(|| -> BoxFuture<'_, ()> { panic!("no call") }).await, Err("no call".to_owned()));
        assert_eq!(guarded(|| Box::pin(async { panic!("no answer") as () })).await, Err("no answer".to_owned()));
        let late = async {
            let _bomb = Bomb;
            pending::<()>().await;
        };
        let dropped = tokio::time::timeout(std::time::Duration::from_millis(1), guarded(|| Box::pin(late))).await;
        assert!(dropped.is_err(), "its time was up, and nobody unwound");
    }

    #[tokio::test]
    async fn an_answer_whose_future_panics_when_it_is_dropped_is_a_panic() {
        /// Is ready at once, and keeps a bomb.
        struct Ready {
            _bomb: Bomb,
        }
        impl Future for Ready {
            type Output = ();
            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                Poll::Ready(())
            }
        }
        assert_eq!(guarded(|| Box::pin(Ready { _bomb: Bomb })).await, Err("boom".to_owned()));
    }
}
