use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::task::AbortHandle;

use super::into_handler::handler;
use super::{
    AbandonedThreads, Delivery, EventHandler, Handler, HandlerError, IntoHandler, IntoOutcome, Outcome, Route, shape,
};
use crate::event::{Decode, Event};

/// Wraps a handler that is not async, so that it runs on a thread where blocking is allowed.
///
/// A worker waits for it, so no more than `workers` of them run at once, unless one times out. Nothing can interrupt the
/// thread: when the handler's timeout is over the attempt has failed, while the thread goes on, and the next attempt may run
/// beside it. The gauge `handler.abandoned` counts such threads. Past the drain timeout of a shutdown the verdict is no
/// longer recorded.
///
/// ```
/// use pillarbox_core::handle::{Delivery, IntoHandler as _, blocking};
/// # fn print_label(_: &Delivery) -> std::io::Result<()> { Ok(()) }
/// // Registered as any other handler: `.handle_type("label.wanted", blocking(print))`.
/// let handler = blocking(|delivery: Delivery| print_label(&delivery)).into_handler();
/// ```
pub fn blocking<F>(handler: F) -> Blocking<F> {
    Blocking(Arc::new(handler))
}

/// See [`blocking`].
#[derive(Debug)]
pub struct Blocking<F>(Arc<F>);

/// A call on a blocking thread: told apart are one that is waited for, one that was given up, and one that has ended.
#[derive(Debug)]
struct Thread {
    state: AtomicU8,
    abandoned: AbandonedThreads,
}

const AWAITED: u8 = 0;
const GIVEN_UP: u8 = 1;
const ENDED: u8 = 2;

/// The worker's side. Dropped before the thread has ended, it gives the call up.
struct Waiting {
    thread: Arc<Thread>,
    task: AbortHandle,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.thread.state.compare_exchange(AWAITED, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.thread.abandoned.begin();
            // One that has not begun never will; the thread of one that runs goes on.
            self.task.abort();
        }
    }
}

/// The thread's side.
struct InThread(Arc<Thread>);

impl Drop for InThread {
    fn drop(&mut self) {
        if self.0.state.swap(ENDED, Ordering::AcqRel) == GIVEN_UP {
            self.0.abandoned.end();
        }
    }
}

/// Runs `call` on a blocking thread; a panic there continues here, where the worker turns it into a failure.
async fn off_thread<R: IntoOutcome + Send + 'static>(
    abandoned: AbandonedThreads,
    call: impl FnOnce() -> R + Send + 'static,
) -> Result<Outcome, HandlerError> {
    let thread = Arc::new(Thread { state: AtomicU8::new(AWAITED), abandoned });
    let in_thread = InThread(Arc::clone(&thread));
    let task = tokio::task::spawn_blocking(move || {
        let _in_thread = in_thread;
        call()
    });
    let _waiting = Waiting { thread, task: task.abort_handle() };
    match task.await {
        Ok(returned) => returned.into_outcome(),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(HandlerError::interrupted("the runtime is shutting down")),
        },
    }
}

#[diagnostic::do_not_recommend]
impl<F, P, R> EventHandler<shape::Blocking<shape::Typed<P>>> for Blocking<F>
where
    F: Fn(P) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let (call, payload) = (Arc::clone(&self.0), delivery.decode()?);
            Ok(off_thread(delivery.abandoned(), move || call(payload)))
        })
    }
}

#[diagnostic::do_not_recommend]
impl<F, P, R> EventHandler<shape::Blocking<shape::TypedWithDelivery<P>>> for Blocking<F>
where
    F: Fn(P, Delivery) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let (call, payload) = (Arc::clone(&self.0), delivery.decode()?);
            Ok(off_thread(delivery.abandoned(), move || call(payload, delivery)))
        })
    }
}

#[diagnostic::do_not_recommend]
impl<F, R> IntoHandler<shape::Blocking<shape::Generic>> for Blocking<F>
where
    F: Fn(Delivery) -> R + Send + Sync + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let call = Arc::clone(&self.0);
            Ok(off_thread(delivery.abandoned(), move || call(delivery)))
        })
    }
}
