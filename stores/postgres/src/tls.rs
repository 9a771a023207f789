use std::path::PathBuf;
use std::sync::Arc;

use pillarbox_connect::tls;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connector::Connector;

/// The rules by which a server's certificate is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) verify: Verify,
    pub(crate) roots: Roots,
    /// TLS from the first byte on (`sslnegotiation=direct`), which has to name the protocol.
    pub(crate) direct: bool,
    /// The client certificate, shown to a server that asks for one.
    pub(crate) identity: Option<Identity>,
}

/// The PEM files of a client's certificate and of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The parts of a certificate that are verified: the rows of libpq's table of `sslmode`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    /// `prefer`, and `require` without a root certificate, protect against eavesdroppers only.
    Nothing,
    /// `verify-ca`: the certificate was issued by somebody trusted.
    Chain,
    /// `verify-full`: and for this very host.
    ChainAndName,
}

/// The authorities whose signature makes a certificate trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The operating system's.
    System,
    /// The certificates in this PEM file.
    File(PathBuf),
}

impl Tls {
    /// Trusts these authorities. As in libpq, `require` then verifies that one of them has issued the certificate.
    pub(crate) fn trust(&mut self, roots: Roots, mode: SslMode) {
        self.roots = roots;
        if self.verify == Verify::Nothing && mode == SslMode::Require {
            self.verify = Verify::Chain;
        }
    }

    /// The connector. The cryptography is handed in here, so that it works in a process with any default provider or none.
    pub(crate) fn connector(&self) -> Result<Connector, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(format!("TLS cannot be set up: {error}")))?;
        let builder = match self.verify {
            Verify::ChainAndName => builder.with_root_certificates(self.roots.load()?),
            Verify::Nothing | Verify::Chain => {
                let roots = if self.verify == Verify::Chain { Some(self.roots.load()?) } else { None };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { roots, provider }))
            }
        };
        let mut config = match &self.identity {
            Some(Identity { certificate, key }) => {
                let (chain, key) = tls::identity(("sslcert", certificate), ("sslkey", key))
                    .map_err(|error| refuse(error.to_string()))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| refuse(format!("`sslcert` and `sslkey` cannot be used: {error}")))?
            }
            None => builder.with_no_client_auth(),
        };
        if self.direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Connector::new(MakeRustlsConnect::new(config)))
    }
}

impl Roots {
    fn load(&self) -> Result<RootCertStore, StoreError> {
        let file = match self {
            Self::System => None,
            Self::File(path) => Some(path.as_path()),
        };
        tls::roots("sslrootcert", file).map_err(|error| refuse(error.to_string()))
    }
}

fn refuse(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "prepare TLS", message)
}

/// Accepts a certificate whatever host it names; with roots, only one that they issued.
#[derive(Debug)]
struct AnyName {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
