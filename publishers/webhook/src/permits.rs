//! The permits for requests of one call, divided among its servers.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// All permits of a call: no more requests than these are under way at once.
pub(crate) struct Permits {
    free: Semaphore,
    total: usize,
    /// The number that a server may take before it has answered anything, so that one that does not answer leaves room for the others.
    share: usize,
}

/// The permits that one server may take: its share, and one more with each answer.
pub(crate) struct ServerPermits<'a> {
    all: &'a Permits,
    open: Semaphore,
    opened: AtomicUsize,
}

impl Permits {
    pub(crate) fn new(total: usize, servers: usize) -> Self {
        let share = total.checked_div(servers).unwrap_or(total).max(1);
        Self { free: Semaphore::new(total), total, share }
    }

    pub(crate) fn of_a_server(&self) -> ServerPermits<'_> {
        ServerPermits { all: self, open: Semaphore::new(self.share), opened: AtomicUsize::new(self.share) }
    }
}

impl ServerPermits<'_> {
    /// A permit, once there is one; it is given back when it is dropped. The semaphores are never closed.
    pub(crate) async fn take(&self) -> (Option<SemaphorePermit<'_>>, Option<SemaphorePermit<'_>>) {
        (self.open.acquire().await.ok(), self.all.free.acquire().await.ok())
    }

    /// The server has answered.
    pub(crate) fn answered(&self) {
        if self.opened.fetch_add(1, Ordering::Relaxed) < self.all.total {
            self.open.add_permits(1);
        } else {
            self.opened.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_server_has_its_share_and_one_more_permit_with_each_answer() {
        let permits = Permits::new(4, 3);
        let (silent, well) = (permits.of_a_server(), permits.of_a_server());
        let _held = silent.take().now_or_never().expect("its share");
        assert!(silent.take().now_or_never().is_none(), "it has not answered");
        let _first = well.take().now_or_never().expect("its share");
        (0..10).for_each(|_| well.answered());
        let more: Vec<_> = std::iter::from_fn(|| well.take().now_or_never()).collect();
        assert_eq!(more.len(), 2, "four are under way at most");
    }

    #[test]
    fn each_of_many_servers_may_take_one_and_one_alone_all() {
        assert_eq!((Permits::new(4, 100).share, Permits::new(16, 1).share, Permits::new(16, 0).share), (1, 16, 16));
    }
}
