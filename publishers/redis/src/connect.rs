use std::path::Path;

use pillarbox_connect::{Address, Host, tls};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Linked, PublishError};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo, TlsCertificates,
};

use crate::{RedisPublisher, error};

/// The client's settings; it connects later.
pub(crate) fn client(address: Address, database: i64, ca_file: Option<&Path>) -> Result<Client, ConfigError> {
    let Address { scheme, host: Host { name: host, port, .. }, login, .. } = address;
    let endpoint = if scheme.tls {
        // The client asks for the process's provider. Fails only if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host, port)
    };
    let mut settings = RedisConnectionInfo::default().set_db(database);
    if let Some(username) = login.username {
        settings = settings.set_username(username);
    }
    if let Some(password) = &login.password {
        settings = settings.set_password(password.expose());
    }
    let refuse = |error: redis::RedisError| ConfigError::new("url", format!("is refused: {error}"), "correct it");
    let info = endpoint.into_connection_info().map_err(refuse)?.set_redis_settings(settings);
    match ca_file {
        None => Client::open(info).map_err(refuse),
        Some(file) => {
            let root_cert = Some(tls::pem("ca_file", file)?);
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert }).map_err(refuse)
        }
    }
}

impl RedisPublisher {
    /// The connection that all calls share.
    pub(crate) async fn connected(&self) -> Result<Linked<MultiplexedConnection>, PublishError> {
        self.link.get(self.connect()).await
    }

    async fn connect(&self) -> Result<MultiplexedConnection, PublishError> {
        // A call watches its own time, from before it had a connection; the client's limit would be a second one.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(crate::PIPELINES);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connection.map_err(|error| error::publish_error(&error, &self.info.address))
    }
}
