use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Runs a future until it has waited `waits` times and then drops it; `None` if it was dropped.
pub async fn drop_after<T>(waits: usize, future: impl Future<Output = T>) -> Option<T> {
    Impatient { future: pin!(future), waits }.await
}

struct Impatient<'a, F> {
    future: Pin<&'a mut F>,
    waits: usize,
}

impl<F: Future> Future for Impatient<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.waits == 0 => Poll::Ready(None),
            Poll::Pending => {
                self.waits -= 1;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_future_ends_if_it_may_wait_often_enough() {
        for (waits, ends) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
            let waits_thrice = async {
                for _ in 0..3 {
                    yield_now().await;
                }
            };
            assert_eq!(drop_after(waits, waits_thrice).await.is_some(), ends, "after {waits} waits");
        }
    }
}
