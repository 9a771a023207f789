use pillarbox_core::store::operation;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use async_trait::async_trait;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{Listener, WakeUps};
use tokio_postgres::{AsyncMessage, Client};

use crate::PostgresStore;
use crate::connector::Wire;
use crate::error::Failure;

#[async_trait]
impl WakeUps for PostgresStore {
    async fn notify(&self) -> Result<(), StoreError> {
        let store = self.inner();
        let notifying = async {
            let session = store.sessions.session().await?;
            session.query(&store.sql.notify, &[]).await?;
            session.finish();
            Ok(())
        };
        store.sessions.call(operation::WAKE, notifying).await
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        let store = self.inner();
        let listen = async {
            let session = store.sessions.session().await?;
            let found = session.query(&store.sql.channel, &[]).await?;
            session.finish();
            let channel: String = found.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
            let (client, wire) = store.sessions.connect().await?;
            let mut ear = Ear { client, wire: Some(wire), address: store.sessions.address().to_owned() };
            ear.subscribe(&channel).await?;
            Ok(ear)
        };
        Ok(Box::new(store.sessions.call(operation::LISTEN, listen).await?))
    }
}

/// A connection of its own that listens. The server's side of it sends nothing but notifications; keepalives of TCP tell when
/// there is no other side any more.
struct Ear {
    /// Keeps the connection open.
    client: Client,
    /// `None` once it has ended.
    wire: Option<Wire>,
    address: String,
}

impl Ear {
    async fn subscribe(&mut self, channel: &str) -> Result<(), Failure> {
        let Self { client, wire, .. } = self;
        let statement = format!("LISTEN \"{channel}\"");
        let mut answer = std::pin::pin!(client.batch_execute(&statement));
        poll_fn(|cx| {
            // A notification that comes with the answer is one before the listener was handed out.
            while poll_notification(wire, cx)?.is_ready() {}
            answer.as_mut().poll(cx).map_err(Failure::from)
        })
        .await
    }
}

#[async_trait]
impl Listener for Ear {
    async fn notified(&mut self) -> Result<(), StoreError> {
        let notified = poll_fn(|cx| {
            let mut is_notified = false;
            while poll_notification(&mut self.wire, cx)?.is_ready() {
                is_notified = true;
            }
            if is_notified { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        notified.await.map_err(|failure: Failure| failure.during(operation::LISTEN, &self.address))
    }
}

/// Moves what is under way on the connection, and is ready when a notification arrived.
fn poll_notification(wire: &mut Option<Wire>, cx: &mut Context<'_>) -> Result<Poll<()>, Failure> {
    let closed = || Failure::Refused(StoreErrorKind::Unavailable, "the server closed the connection".to_owned());
    let open = wire.as_mut().ok_or_else(closed)?;
    loop {
        match open.poll_message(cx) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => return Ok(Poll::Ready(())),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => {
                *wire = None;
                return Err(error.into());
            }
            Poll::Ready(None) => {
                *wire = None;
                return Err(closed());
            }
        }
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("address", &self.address).field("open", &self.wire.is_some()).finish()
    }
}
