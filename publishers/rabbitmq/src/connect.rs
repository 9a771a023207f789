use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use async_compat::CompatExt as _;
use lapin::tcp::RustlsConnector;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use pillarbox_connect::Host;
use pillarbox_core::publisher::{Linked, PublishError};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::session::Session;
use crate::{RabbitMqPublisher, error};

/// The interval at which a broker and a client tell each other that they are there, in seconds; after two of these without a sign,
/// either side gives up the connection.
const HEARTBEAT: u16 = 10;

/// Cuts a connection when it is dropped. The client has a thread for each connection, which outlives everything else of it
/// while the broker is silent.
pub(crate) struct Socket(std::net::TcpStream);

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be cut already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl RabbitMqPublisher {
    /// The connection that all calls share; one that is known to be broken is replaced.
    pub(crate) async fn connected(&self) -> Result<Linked<Arc<Session>>, PublishError> {
        self.link.get_if(|session| session.is_open(), self.connect()).await
    }

    async fn connect(&self) -> Result<Arc<Session>, PublishError> {
        let attempt = timeout(self.options.timeout, self.log_in()).await.map_err(|_| self.late("connecting"))?;
        attempt.map(Arc::new).map_err(|error| error::publish_error(&error, &self.info.address))
    }

    async fn log_in(&self) -> Result<Session, lapin::Error> {
        let Host { name, port, .. } = &self.host;
        let tcp = TcpStream::connect((name.as_str(), *port)).await?;
        tcp.set_nodelay(true)?;
        let socket = Socket(tcp.as_fd().try_clone_to_owned()?.into());
        let plain = AsyncTcpStream::Plain(tcp.compat());
        let stream = match &self.tls {
            Some(tls) => plain.into_rustls(&RustlsConnector::from(Arc::clone(tls)), name).await?,
            None => plain,
        };
        // The client asks for a stream once, since it is not told to reconnect by itself: what becomes of the messages that were
        // under way is for the next call to decide.
        let handed = Mutex::new(Some(stream));
        let connect = async move |_, _| {
            let stream = handed.lock().unwrap_or_else(PoisonError::into_inner).take();
            stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected).into())
        };
        let properties = ConnectionProperties::default().with_connection_name("pillarbox".into());
        let runtime = lapin::runtime::default_runtime()?;
        let connection = Connection::connector(self.uri(), runtime, connect, properties).await?;
        Ok(Session::new(connection, socket))
    }

    fn uri(&self) -> AMQPUri {
        let (username, password) = match &self.login {
            Some((username, password)) => (username.as_str(), password.expose()),
            None => ("guest", "guest"),
        };
        let userinfo = AMQPUserInfo { username: username.to_owned(), password: password.to_owned() };
        AMQPUri {
            // TLS, if any, has been spoken already.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority { userinfo, host: self.host.name.clone(), port: self.host.port },
            vhost: self.vhost.clone(),
            query: AMQPQueryString { heartbeat: Some(HEARTBEAT), ..AMQPQueryString::default() },
        }
    }
}
