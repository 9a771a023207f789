use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;

/// A future that runs to its end even if it is dropped: in the background then, and its output is dropped.
///
/// For an exchange with the server that must not stop half-way, such as the `BEGIN` of a pooled connection, in the adapter of a driver that
/// would lose count of it.
pub struct Uninterrupted<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Uninterrupted<T> {
    /// Wraps a future that must be seen through.
    #[must_use]
    pub fn new(future: Pin<Box<dyn Future<Output = T> + Send>>) -> Self {
        Self(Some(future))
    }
}

impl<T: Send + 'static> Future for Uninterrupted<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Polling it again after its end is the caller's mistake; it then waits, as a fused future does.
        let Some(future) = self.0.as_mut() else { return Poll::Pending };
        let output = ready!(future.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Uninterrupted<T> {
    fn drop(&mut self) {
        // Without a runtime the pool is at its end as well, and closes the connection with the future.
        if let (Some(future), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(future.await) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Uninterrupted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uninterrupted").finish_non_exhaustive()
    }
}
