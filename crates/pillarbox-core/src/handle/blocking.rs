use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::task::AbortHandle;

use super::into_handler::{DeliveryForm, EventForm, handler};
use super::signature::{HandledEvent, PassedAs, Signature};
use super::{AbandonedThreads, Delivery, EventKind, Handler, HandlerError, IntoOutcome, Outcome, shape};
use crate::event::Decode;

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

impl<F> Blocking<F> {
    /// The handler.
    pub(super) fn function(&self) -> Arc<F> {
        Arc::clone(&self.0)
    }
}

/// A call on a blocking thread: told apart are one that is waited for, one that was abandoned, and one that has ended.
#[derive(Debug)]
struct Thread {
    state: AtomicU8,
    abandoned: AbandonedThreads,
}

const AWAITED: u8 = 0;
const ABANDONED: u8 = 1;
const ENDED: u8 = 2;

/// The worker's side. Dropped before the thread has ended, it abandons the call.
pub(super) struct AwaitedThread {
    thread: Arc<Thread>,
    task: AbortHandle,
}

impl Drop for AwaitedThread {
    fn drop(&mut self) {
        if self.thread.state.compare_exchange(AWAITED, ABANDONED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.thread.abandoned.begin();
            // One that has not begun never will; the thread of one that runs goes on.
            self.task.abort();
        }
    }
}

impl AwaitedThread {
    /// The two sides of a call: one for the task that waits for it, one for the thread.
    pub(super) fn new(abandoned: AbandonedThreads, task: AbortHandle) -> (Self, InThread) {
        let thread = Arc::new(Thread { state: AtomicU8::new(AWAITED), abandoned });
        (Self { thread: Arc::clone(&thread), task }, InThread(thread))
    }
}

/// The thread's side.
pub(super) struct InThread(Arc<Thread>);

impl Drop for InThread {
    fn drop(&mut self) {
        if self.0.state.swap(ENDED, Ordering::AcqRel) == ABANDONED {
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
    let _awaited = AwaitedThread { thread, task: task.abort_handle() };
    match task.await {
        Ok(returned) => returned.into_outcome(),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(HandlerError::interrupted("the runtime is shutting down")),
        },
    }
}

/// A function that blocks its thread, taken apart.
#[derive(Debug)]
pub struct BlockingCall<F, A, R> {
    function: Arc<F>,
    parts: PhantomData<fn(A) -> R>,
}

#[diagnostic::do_not_recommend]
impl<F, A, R> Signature<shape::Blocking<shape::One<A>>> for Blocking<F>
where
    F: Fn(A) -> R,
{
    type Form = BlockingCall<F, (A,), R>;

    fn form(self) -> Self::Form {
        BlockingCall { function: self.0, parts: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<F, A, B, R> Signature<shape::Blocking<shape::Two<A, B>>> for Blocking<F>
where
    F: Fn(A, B) -> R,
{
    type Form = BlockingCall<F, (A, B), R>;

    fn form(self) -> Self::Form {
        BlockingCall { function: self.0, parts: PhantomData }
    }
}

impl<F, P, R> EventForm for BlockingCall<F, (P,), R>
where
    F: Fn(P) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let (call, payload) = (Arc::clone(&self.function), P::read(&delivery)?);
            Ok(off_thread(delivery.abandoned(), move || call(payload)))
        })
    }
}

impl<F, P, D, R> EventForm for BlockingCall<F, (P, D), R>
where
    F: Fn(P, D) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + Send + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: IntoOutcome + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let (call, payload) = (Arc::clone(&self.function), P::read(&delivery)?);
            Ok(off_thread(delivery.abandoned(), move || call(payload, delivery.pass())))
        })
    }
}

impl<F, D, R> DeliveryForm for BlockingCall<F, (D,), R>
where
    F: Fn(D) -> R + Send + Sync + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: IntoOutcome + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| {
            let call = Arc::clone(&self.function);
            Ok(off_thread(delivery.abandoned(), move || call(delivery.pass())))
        })
    }
}
