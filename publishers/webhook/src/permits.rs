//! The permits for requests of one call, divided among its tenants, and those of a tenant among its servers.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Permits that somebody may take: all those of a call, or the share of a tenant or a server in those around it. A share grows by one
/// with each answer, so that what does not answer leaves room for the others.
pub(crate) struct Permits<'a> {
    around: Option<&'a Permits<'a>>,
    semaphore: Semaphore,
    size: AtomicUsize,
    /// The number of all permits of the call.
    total: usize,
}

/// A permit of a server, and the one that it takes of its tenant and of the call.
pub(crate) struct Permit<'a> {
    _own: Option<SemaphorePermit<'a>>,
    around: Vec<SemaphorePermit<'a>>,
}

impl<'a> Permits<'a> {
    /// All permits of a call: no more requests than these are under way at once.
    pub(crate) fn new(total: usize) -> Self {
        Self { around: None, semaphore: Semaphore::new(total), size: AtomicUsize::new(total), total }
    }

    /// The share of one of so many, at least one permit.
    pub(crate) fn share(&'a self, among: usize) -> Self {
        let size = self.size.load(Ordering::Relaxed).checked_div(among).unwrap_or_default().max(1);
        Self { around: Some(self), semaphore: Semaphore::new(size), size: AtomicUsize::new(size), total: self.total }
    }

    /// A permit, once there is one; it is given back when it is dropped. The semaphores are never closed.
    pub(crate) async fn take(&'a self) -> Permit<'a> {
        let own = self.semaphore.acquire().await.ok();
        let mut around = Vec::with_capacity(2);
        let mut share = self.around;
        while let Some(permits) = share {
            around.extend(permits.semaphore.acquire().await.ok());
            share = permits.around;
        }
        Permit { _own: own, around }
    }

    /// The server has answered.
    pub(crate) fn answered(&self) {
        let mut share = Some(self);
        while let Some(permits) = share {
            if permits.size.fetch_add(1, Ordering::Relaxed) < permits.total {
                permits.semaphore.add_permits(1);
            } else {
                permits.size.fetch_sub(1, Ordering::Relaxed);
            }
            share = permits.around;
        }
    }
}

impl Permit<'_> {
    /// Lets other servers and tenants have what this one holds of theirs; the server itself gets no more requests.
    pub(crate) fn make_room(&mut self) {
        self.around.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// All permits that can be taken at once.
    fn taken<'a>(permits: &'a Permits<'a>) -> Vec<Permit<'a>> {
        std::iter::from_fn(|| permits.take().now_or_never()).collect()
    }

    #[test]
    fn a_server_has_its_share_and_one_more_permit_with_each_answer() {
        let all = Permits::new(4);
        let tenant = all.share(1);
        let (silent, well) = (tenant.share(3), tenant.share(3));
        let held = taken(&silent);
        assert_eq!(held.len(), 1, "it has not answered");
        let first = taken(&well);
        assert_eq!(first.len(), 1, "its share");
        (0..10).for_each(|_| well.answered());
        assert_eq!(taken(&well).len(), 2, "four are under way at most");
    }

    #[test]
    fn a_tenant_with_many_servers_has_no_more_than_its_share() {
        let all = Permits::new(4);
        let (many, one) = (all.share(2), all.share(2));
        let servers: Vec<_> = (0..100).map(|_| many.share(100)).collect();
        let held: Vec<_> = servers.iter().flat_map(taken).collect();
        assert_eq!(held.len(), 2);
        let server = one.share(1);
        assert_eq!(taken(&server).len(), 2);
        server.answered();
        assert_eq!(taken(&server).len(), 2, "others hold the rest");
        drop(held);
        assert_eq!(taken(&server).len(), 3, "it has answered once");
    }

    #[test]
    fn a_server_that_makes_room_gets_no_permit_for_it() {
        let all = Permits::new(2);
        let tenant = all.share(1);
        let (slow, other) = (tenant.share(1), tenant.share(1));
        let mut held = taken(&slow);
        assert_eq!((held.len(), taken(&other).len()), (2, 0));
        held.iter_mut().for_each(Permit::make_room);
        assert_eq!((taken(&slow).len(), taken(&other).len()), (0, 2));
    }

    #[test]
    fn each_of_many_servers_may_take_one_and_one_alone_all() {
        let (few, many) = (Permits::new(4), Permits::new(16));
        let sizes = [few.share(100), many.share(1), many.share(0)].map(|share| share.size.into_inner());
        assert_eq!(sizes, [1, 16, 1]);
    }
}
