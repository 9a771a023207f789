use std::sync::Arc;

use pillarbox_connect::tls;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Link, Linked, PublishError};
use rustls::ClientConfig;
use tokio::time::{Instant, timeout_at};

use crate::NatsOptions;
use crate::connection::Connection;
use crate::servers::Servers;

/// The settings of connections, and the connection that all calls share.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) options: NatsOptions,
    pub(crate) servers: Servers,
    pub(crate) tls: Option<ClientConfig>,
    pub(crate) link: Link<Arc<Connection>>,
}

impl Connector {
    pub(crate) fn new(options: NatsOptions) -> Result<Self, ConfigError> {
        options.check()?;
        let servers = Servers::of(&options)?;
        // Beside `tls://`, since a server may ask for TLS whatever the address says.
        let wanted = servers.tls || options.ca_file.is_some();
        let tls = wanted.then(|| tls::client_config(options.ca_file.as_deref())).transpose()?;
        Ok(Self { options, servers, tls, link: Link::new() })
    }

    /// The connection, or the reason why there is none by the deadline.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Linked<Arc<Connection>>, PublishError> {
        let connect = async {
            let opened = timeout_at(deadline, Connection::open(self)).await;
            opened.unwrap_or_else(|_| Err(self.late())).map(Arc::new)
        };
        let linked = timeout_at(deadline, self.link.get_if(|connection| connection.is_alive(), connect)).await;
        linked.unwrap_or_else(|_| Err(self.late()))
    }

    /// The error when the time is up.
    pub(crate) fn late(&self) -> PublishError {
        PublishError::unavailable(format!("{} did not answer in time", self.servers.shown))
    }
}
