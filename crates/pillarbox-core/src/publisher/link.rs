use std::fmt;
use std::future::Future;

use super::PublishError;

use crate::lock::Mutex;

/// The one connection of a publisher, shared by all its calls: made when it is first needed, and again after it was lost.
///
/// Only one caller at a time connects. Callers that wait meanwhile share the result, the failure too, so that a broker that is
/// away is asked once and not once for each of them. Each method may be dropped at any await.
///
/// ```
/// use pillarbox_core::publisher::{Link, PublishError};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let link = Link::new();
/// let linked = link.get(async { Ok("a connection") }).await?;
/// assert_eq!(linked.connection, "a connection");
/// link.lost(&linked);
/// assert!(link.get(async { Err(PublishError::unavailable("nobody answers")) }).await.is_err());
/// # Ok::<(), PublishError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Link<C> {
    state: Mutex<State<C>>,
    /// Held while a caller connects.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection and its generation number.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Linked<C> {
    /// The connection.
    pub connection: C,
    /// True if it was there before it was asked for; it may have been cut since without anybody noticing.
    pub reused: bool,
    number: u64,
}

struct State<C> {
    connection: Option<C>,
    /// The number of connections that were made.
    made: u64,
    /// The number of attempts that have failed, and the failure of the last one.
    failed: u64,
    failure: Result<(), PublishError>,
    closed: bool,
}

impl<C: Clone> Link<C> {
    /// A link that is not connected.
    #[must_use]
    pub fn new() -> Self {
        let state = State { connection: None, made: 0, failed: 0, failure: Ok(()), closed: false };
        Self { state: Mutex::new(state), connecting: tokio::sync::Mutex::new(()) }
    }

    /// The connection; if there is none, one that `connect` makes. `connect` is dropped without being begun when it is not needed.
    ///
    /// # Errors
    /// The failure of `connect`, here or in the call that this one waited for, or
    /// [`Unavailable`](super::PublishErrorKind::Unavailable) once the link is closed.
    pub async fn get(&self, connect: impl Future<Output = Result<C, PublishError>>) -> Result<Linked<C>, PublishError> {
        self.get_if(|_| true, connect).await
    }

    /// As [`get`](Self::get), for clients that can tell whether a connection is still open: one that is not is forgotten first.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_if(
        &self,
        is_open: impl Fn(&C) -> bool,
        connect: impl Future<Output = Result<C, PublishError>>,
    ) -> Result<Linked<C>, PublishError> {
        let failed = self.state.lock().failed;
        if let Some(linked) = self.find(&is_open)? {
            return Ok(linked);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(linked) = self.find(&is_open)? {
            return Ok(Linked { reused: false, ..linked });
        }
        {
            let state = self.state.lock();
            if state.failed != failed {
                state.failure.clone()?;
            }
        }
        let attempt = connect.await;
        let mut state = self.state.lock();
        match attempt {
            Ok(connection) => {
                state.refuse_closed()?;
                state.made += 1;
                state.connection = Some(connection.clone());
                Ok(Linked { connection, reused: false, number: state.made })
            }
            Err(error) => {
                state.failed += 1;
                state.failure = Err(error.clone());
                Err(error)
            }
        }
    }

    /// Forgets this connection, so that the next call makes another. One that was made since is kept.
    pub fn lost(&self, linked: &Linked<C>) {
        let mut state = self.state.lock();
        let forgotten = if state.made == linked.number { state.connection.take() } else { None };
        // Ending a connection may take a moment, so it happens outside the lock.
        drop(state);
        drop(forgotten);
    }

    /// Gives the connection out to be closed, if there is one, and makes none from now on.
    pub fn close(&self) -> Option<C> {
        let mut state = self.state.lock();
        state.closed = true;
        state.connection.take()
    }

    fn find(&self, is_open: impl Fn(&C) -> bool) -> Result<Option<Linked<C>>, PublishError> {
        let found = self.state.lock().linked()?;
        if let Some(linked) = found.as_ref().filter(|linked| !is_open(&linked.connection)) {
            self.lost(linked);
            return Ok(None);
        }
        Ok(found)
    }
}

impl<C: Clone> State<C> {
    fn linked(&self) -> Result<Option<Linked<C>>, PublishError> {
        self.refuse_closed()?;
        let connection = self.connection.clone();
        Ok(connection.map(|connection| Linked { connection, reused: true, number: self.made }))
    }

    fn refuse_closed(&self) -> Result<(), PublishError> {
        if self.closed { Err(PublishError::unavailable("the publisher is closed")) } else { Ok(()) }
    }
}

impl<C: Clone> Default for Link<C> {
    fn default() -> Self {
        Self::new()
    }
}

// A connection may hold credentials.
impl<C> fmt::Debug for Link<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn callers_who_wait_share_one_attempt_and_its_outcome() {
        for succeeds in [true, false] {
            let link = Link::new();
            let attempts = AtomicU32::new(0);
            let others_wait = Semaphore::new(0);
            let connect = async || {
                attempts.fetch_add(1, Ordering::Relaxed);
                let _all_asked = others_wait.acquire().await;
                if succeeds { Ok(7) } else { Err(PublishError::unavailable("away")) }
            };
            let asked = join_all((0..8).map(|_| link.get(connect())));
            let (outcomes, ()) = tokio::join!(asked, async { others_wait.add_permits(1) });
            assert_eq!(attempts.load(Ordering::Relaxed), 1);
            assert!(outcomes.iter().all(|outcome| outcome.is_ok() == succeeds));

            // A later caller asks anew where it failed.
            others_wait.add_permits(1);
            assert_eq!(link.get(connect()).await.is_ok(), succeeds);
            assert_eq!(attempts.load(Ordering::Relaxed), if succeeds { 1 } else { 2 });
        }
    }

    #[tokio::test]
    async fn only_the_connection_that_was_lost_is_forgotten() {
        let link = Link::new();
        let first = link.get(async { Ok(1) }).await.expect("connects");
        link.lost(&first);
        let second = link.get(async { Ok(2) }).await.expect("connects");
        link.lost(&first);
        let third = link.get(async { Ok(3) }).await.expect("is there");
        assert_eq!((first.reused, second.reused, third.reused, third.connection), (false, false, true, 2));
    }

    #[tokio::test]
    async fn a_connection_that_is_not_open_is_replaced() {
        let link = Link::new();
        link.get(async { Ok(1) }).await.expect("connects");
        let same = link.get_if(|connection| *connection == 1, async { Ok(2) }).await.expect("is there");
        let other = link.get_if(|connection| *connection != 1, async { Ok(2) }).await.expect("connects");
        assert_eq!((same.connection, same.reused, other.connection, other.reused), (1, true, 2, false));
        let failed = link.get_if(|_| false, async { Err(PublishError::unavailable("away")) }).await;
        assert!(failed.is_err() && link.get(async { Ok(3) }).await.is_ok_and(|linked| linked.connection == 3));
    }

    #[tokio::test]
    async fn nothing_is_connected_after_it_was_closed() {
        let link = Link::new();
        link.get(async { Ok(1) }).await.expect("connects");
        assert_eq!((link.close(), link.close()), (Some(1), None));
        assert!(link.get(async { Ok(2) }).await.is_err());
        let late = Link::new();
        let connect = async {
            late.close();
            Ok(1)
        };
        assert!(late.get(connect).await.is_err(), "closed while it was connecting");
    }

    #[tokio::test]
    async fn an_attempt_that_is_dropped_leaves_the_turn_to_the_next() {
        let link = Link::new();
        {
            let mut attempt = Box::pin(link.get(std::future::pending::<Result<u8, _>>()));
            assert!(futures_util::poll!(&mut attempt).is_pending());
        }
        assert!(link.get(async { Ok(1) }).await.is_ok());
    }
}
