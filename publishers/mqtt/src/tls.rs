use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pillarbox_core::error::ConfigError;
use rumqttc::{TlsConfiguration, Transport};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// How the broker's certificate is verified: it was issued by somebody trusted, for this very host.
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// The cryptography is handed in here, so that it works in a process with any default provider or none.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, ConfigError> {
        let roots = match authorities {
            Some(file) => read(file)?,
            None => of_the_system()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::new("url", format!("asks for TLS, which failed: {error}"), "report it"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn transport(&self) -> Transport {
        Transport::tls_with_config(TlsConfiguration::Rustls(Arc::clone(&self.0)))
    }
}

fn of_the_system() -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let remedy = "install its package `ca-certificates`, or name a PEM file";
        return Err(ConfigError::new("ca_file", "is missing, and the system has no root certificates", remedy));
    }
    Ok(roots)
}

fn read(file: &Path) -> Result<RootCertStore, ConfigError> {
    let refuse = |problem: String| {
        ConfigError::new("ca_file", format!("{} {problem}", file.display()), "name a PEM file of certificates")
    };
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    for certificate in certificates {
        certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()))
            .map_err(|error| refuse(format!("holds a certificate that cannot be used: {error}")))?;
    }
    if roots.is_empty() { Err(refuse("holds no certificates".to_owned())) } else { Ok(roots) }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
