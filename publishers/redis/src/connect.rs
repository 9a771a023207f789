use std::path::Path;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Linked, PublishError};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo, TlsCertificates,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::address::Address;
use crate::{RedisOptions, RedisPublisher, error};

/// The client's settings; it connects later.
pub(crate) fn client(address: &Address, options: &RedisOptions) -> Result<Client, ConfigError> {
    let Address { host, port, .. } = address;
    let endpoint = if address.tls {
        // The client asks for the process's provider. Fails only if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host.clone(), *port)
    };
    let mut settings = RedisConnectionInfo::default().set_db(i64::from(address.database));
    if let Some(username) = options.username.as_ref().or(address.username.as_ref()) {
        settings = settings.set_username(username);
    }
    if let Some(password) = options.password.as_ref().or(address.password.as_ref()) {
        settings = settings.set_password(password.expose());
    }
    let refuse = |error: redis::RedisError| ConfigError::new("url", format!("is refused: {error}"), "correct it");
    let info = endpoint.into_connection_info().map_err(refuse)?.set_redis_settings(settings);
    match &options.ca_file {
        None => Client::open(info).map_err(refuse),
        Some(file) => {
            let root_cert = Some(authorities(file)?);
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert }).map_err(refuse)
        }
    }
}

/// The content of a PEM file, once it is known to hold usable certificates.
fn authorities(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let refuse = |problem: String| {
        ConfigError::new("ca_file", format!("{} {problem}", file.display()), "name a PEM file of certificates")
    };
    let pem = std::fs::read(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()))
            .map_err(|error| refuse(format!("holds a certificate that cannot be used: {error}")))?;
    }
    if roots.is_empty() {
        return Err(refuse("holds no certificates".to_owned()));
    }
    Ok(pem)
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
        connection.map_err(|error| error::explain(&error, &self.info.address))
    }
}
