use std::path::PathBuf;

use mysql_async::{ClientIdentity, SslOpts};
use pillarbox_connect::tls;
use pillarbox_core::error::{ConfigError, StoreError, StoreErrorKind};
use rustls::crypto::CryptoProvider;

use crate::url;

/// The protection of the connection, in the words of MySQL's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SslMode {
    Disabled,
    /// TLS if the server offers it; protects against eavesdroppers only.
    #[default]
    Preferred,
    /// TLS or nothing; protects against eavesdroppers only.
    Required,
    /// And a certificate by a trusted authority, for this very host.
    VerifyIdentity,
}

impl SslMode {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        match text.to_ascii_lowercase().as_str() {
            "disabled" => Ok(Self::Disabled),
            "preferred" => Ok(Self::Preferred),
            "required" => Ok(Self::Required),
            "verify_identity" => Ok(Self::VerifyIdentity),
            // The driver cannot verify the one without the other.
            "verify_ca" => Err(url::refuse(
                "has a parameter `ssl-mode` that is not supported, `verify_ca`",
                "use verify_identity, which also verifies the host, or required",
            )),
            _ => Err(url::refuse(
                "has a parameter `ssl-mode` that is unknown",
                "use disabled, preferred, required or verify_identity",
            )),
        }
    }
}

/// The protection of the connection, and the certificates that are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tls {
    pub(crate) mode: SslMode,
    /// A PEM file; without it, the operating system's authorities.
    pub(crate) ca_file: Option<PathBuf>,
    /// The client certificate, shown to a server that asks for one.
    pub(crate) identity: Option<Identity>,
}

/// The PEM files of a client's certificate and of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Tls {
    /// Refuses authorities that nothing would be verified by, and a certificate that nobody would see.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.identity.is_some() && self.mode == SslMode::Disabled {
            return Err(url::refuse(
                "names a client's certificate, by `ssl-cert` and `ssl-key`, for a connection without TLS",
                "write `ssl-mode=required` or more, or leave the certificate out",
            ));
        }
        if self.ca_file.is_some() && self.mode != SslMode::VerifyIdentity {
            return Err(url::refuse(
                "names authorities to trust, by `ssl-ca` or `ca_file`, in a mode that verifies no certificate",
                "write `ssl-mode=verify_identity`, or leave the authorities out",
            ));
        }
        Ok(())
    }

    /// The driver's options; `None` is a connection without TLS.
    pub(crate) fn options(&self) -> Result<Option<SslOpts>, StoreError> {
        if self.mode == SslMode::Disabled {
            return Ok(None);
        }
        install_provider();
        let identity = self.identity.as_ref().map(Identity::load).transpose()?;
        let options = SslOpts::default().with_client_identity(identity);
        if self.mode != SslMode::VerifyIdentity {
            return Ok(Some(options.with_danger_accept_invalid_certs(true)));
        }
        // The driver would read the file itself, and take a missing one for a lost connection.
        let roots = tls::certificates("ssl-ca", self.ca_file.as_deref()).map_err(refuse)?;
        let roots = roots.into_iter().map(|certificate| certificate.to_vec().into()).collect();
        Ok(Some(options.with_disable_built_in_roots(true).with_root_certs(roots)))
    }
}

impl Identity {
    /// Both files, known to hold what they should: the driver would take a missing one for a lost connection.
    fn load(&self) -> Result<ClientIdentity, StoreError> {
        let Self { certificate, key } = self;
        tls::identity(("ssl-cert", certificate), ("ssl-key", key)).map_err(refuse)?;
        Ok(ClientIdentity::new(certificate.clone().into(), key.clone().into()))
    }
}

fn refuse(error: ConfigError) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "prepare TLS", error.to_string()).with_source(error)
}

/// The driver takes the process's default cryptography, and panics if there is none to tell among several. An application
/// that has installed one keeps it.
pub(crate) fn install_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
