use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use deadpool_postgres::{Manager, ManagerConfig};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};

/// A connector for TLS of any type: ours, or one's own.
#[derive(Clone)]
pub(crate) struct Connector(Arc<dyn Connect>);

trait Connect: Send + Sync {
    fn manager(&self, config: Config, settings: ManagerConfig) -> Manager;
    fn connect(&self, config: Config) -> Connecting;
}

type Connecting = Pin<Box<dyn Future<Output = Result<(Client, Wire), Error>> + Send>>;

/// The end of a connection that sends and receives. It moves only while it is polled; no task drives it.
pub(crate) type Wire = Box<dyn Messages + Send>;

/// A connection of which each message is looked at.
pub(crate) trait Messages {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>>;
}

impl<S> Messages for Connection<Socket, S>
where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        Connection::poll_message(self, cx)
    }
}

struct Tls<T>(T);

impl<T> Connect for Tls<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + Sync + 'static,
    T::TlsConnect: Send + Sync,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn manager(&self, config: Config, settings: ManagerConfig) -> Manager {
        Manager::from_config(config, self.0.clone(), settings)
    }

    fn connect(&self, config: Config) -> Connecting {
        let tls = self.0.clone();
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            Ok((client, Box::new(connection) as Wire))
        })
    }
}

impl Connector {
    pub(crate) fn new<T>(tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync + 'static,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self(Arc::new(Tls(tls)))
    }

    pub(crate) fn manager(&self, config: Config, settings: ManagerConfig) -> Manager {
        self.0.manager(config, settings)
    }

    pub(crate) async fn connect(&self, config: Config) -> Result<(Client, Wire), Error> {
        self.0.connect(config).await
    }
}

// It may hold keys.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
