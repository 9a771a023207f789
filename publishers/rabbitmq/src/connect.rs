use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use async_compat::CompatExt as _;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use pillarbox_core::publisher::{Linked, PublishError, Secret};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::session::Session;
use crate::{Address, RabbitMqPublisher, error};

/// How often a broker and a client tell each other that they are there, in seconds; after two of these without a sign the
/// connection is given up, by either side.
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
        let linked = self.link.get(self.connect()).await?;
        if linked.connection.is_open() {
            return Ok(linked);
        }
        self.link.lost(&linked);
        self.link.get(self.connect()).await
    }

    async fn connect(&self) -> Result<Arc<Session>, PublishError> {
        let address = &self.info.address;
        let attempt = timeout(self.options.timeout, self.log_in()).await;
        attempt
            .map_err(|_| PublishError::unavailable(format!("{address} did not answer in time (connecting)")))?
            .map(Arc::new)
            .map_err(|error| error::explain(&error, address))
    }

    async fn log_in(&self) -> Result<Session, lapin::Error> {
        let Address { host, port, .. } = &self.address;
        let tcp = TcpStream::connect((host.as_str(), *port)).await?;
        tcp.set_nodelay(true)?;
        let socket = Socket(tcp.as_fd().try_clone_to_owned()?.into());
        let plain = AsyncTcpStream::Plain(tcp.compat());
        let stream = match &self.tls {
            Some(tls) => plain.into_rustls(&tls.connector(), host).await?,
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
        let Address { host, port, vhost, username, password, .. } = &self.address;
        let login = |text: Option<&str>| text.unwrap_or("guest").to_owned();
        let userinfo = AMQPUserInfo {
            username: login(username.as_deref()),
            password: login(password.as_ref().map(Secret::expose)),
        };
        AMQPUri {
            // TLS, if any, has been spoken already.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority { userinfo, host: host.clone(), port: *port },
            vhost: vhost.clone(),
            query: AMQPQueryString { heartbeat: Some(HEARTBEAT), ..AMQPQueryString::default() },
        }
    }
}
