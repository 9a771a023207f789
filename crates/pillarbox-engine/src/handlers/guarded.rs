use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pillarbox_core::handle::BoxFuture;

use crate::observe::panic_message;

/// Calls the user's code and waits for it; a panic, of the call or of its future, comes back as what it said.
///
/// A panic unwinds through the user's own state only: the future is dropped and never polled again. Where it is dropped before its end,
/// as when its time is up, a panic of its destructors is logged, and goes no further: it would end the worker.
pub(crate) fn guarded<'a, T, C: FnOnce() -> BoxFuture<'a, T>>(call: C) -> impl Future<Output = Result<T, String>> {
    Guarded { call: Some(call), called: None }
}

/// A call of the user's code that lets no panic out.
struct Guarded<'a, T, C> {
    /// `None` once it has begun.
    call: Option<C>,
    /// `None` before, and once it has ended.
    called: Option<BoxFuture<'a, T>>,
}

// The call is moved before it is made.
impl<T, C> Unpin for Guarded<'_, T, C> {}

impl<'a, T, C: FnOnce() -> BoxFuture<'a, T>> Future for Guarded<'a, T, C> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, called } = &mut *self;
        // Written in its place, and not returned through the unwinding, which would copy it twice for each event.
        let mut answer = Poll::Pending;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            if let Some(call) = call.take() {
                *called = Some(call());
            }
            let Some(future) = called else { return };
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                answer = Poll::Ready(Ok(ready));
                *called = None;
            }
        }));
        if let Err(panic) = ended {
            self.discard();
            return Poll::Ready(Err(panic_message(&*panic)));
        }
        answer
    }
}

impl<T, C> Guarded<'_, T, C> {
    /// Drops a call that has not ended.
    fn discard(&mut self) {
        let Some(called) = self.called.take() else { return };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(called))) {
            let panic = panic_message(&*panic);
            tracing::error!(panic, "a call of a handler, or of what runs around it, panicked when it was dropped");
        }
    }
}

impl<T, C> Drop for Guarded<'_, T, C> {
    fn drop(&mut self) {
        self.discard();
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
