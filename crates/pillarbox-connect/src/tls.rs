//! TLS by rustls: whose certificates are trusted, and how to tell that one was not.
//!
//! The cryptography is handed in, so that it works in a process with any default provider or none.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use pillarbox_core::error::ConfigError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// A client that trusts the authorities in `ca_file`, or the system's, for certificates that name the very host.
///
/// # Errors
/// When there are none.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, ConfigError> {
    trusting(roots("ca_file", ca_file)?)
}

/// A client that trusts these authorities.
///
/// # Errors
/// When TLS cannot be set up, which is no fault of any option.
pub fn trusting(roots: RootCertStore) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError::new("url", format!("asks for TLS, which failed: {error}"), "report it"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The authorities in the PEM file that `option` names, or the system's.
///
/// # Errors
/// When there are none.
pub fn roots(option: &'static str, file: Option<&Path>) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(option, file)?);
    Ok(roots)
}

/// The certificates of the authorities in the PEM file that `option` names, or of the system's. Each is one that can be used.
///
/// # Errors
/// When there are none.
pub fn certificates(option: &'static str, file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    if let Some(file) = file {
        return read(option, file).map(|(_, certificates)| certificates);
    }
    let mut found = rustls_native_certs::load_native_certs().certs;
    found.retain(|certificate| usable(certificate).is_ok());
    if found.is_empty() {
        let remedy = "install its package `ca-certificates`, or name a PEM file";
        return Err(ConfigError::new(option, "is missing, and the system has no root certificates", remedy));
    }
    Ok(found)
}

/// The content of the PEM file that `option` names, once it is known to hold certificates that can be used: for clients that
/// read it themselves.
///
/// # Errors
/// When it holds none, or one that cannot be used.
pub fn pem(option: &'static str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    read(option, file).map(|(pem, _)| pem)
}

/// The certificate of a client with those of its issuers, and its key, from the PEM files that two options name.
///
/// # Errors
/// When a file cannot be read, or holds no such thing. The error shows no key.
pub fn identity(
    (option, certificate): (&'static str, &Path),
    (key_option, key): (&'static str, &Path),
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    let refuse = |option, file: &Path, problem: String| {
        ConfigError::new(option, format!("names {}, which {problem}", file.display()), "name a PEM file")
    };
    let pem = |option, file: &Path| {
        std::fs::read(file).map_err(|error| refuse(option, file, format!("cannot be read: {error}")))
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem(option, certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| refuse(option, certificate, format!("is malformed: {error}")))?;
    if chain.is_empty() {
        return Err(refuse(option, certificate, "holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&pem(key_option, key)?)
        .map_err(|_| refuse(key_option, key, "holds no private key without a password".to_owned()))?;
    Ok((chain, key))
}

fn read(option: &'static str, file: &Path) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>), ConfigError> {
    let refuse = |problem: String| {
        let problem = format!("names {}, which {problem}", file.display());
        ConfigError::new(option, problem, "name a PEM file of root certificates")
    };
    let pem = std::fs::read(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .map(|certificate| {
            let certificate = certificate.map_err(|error| refuse(format!("is malformed: {error}")))?;
            usable(&certificate)
                .map_err(|error| refuse(format!("holds a certificate that cannot be used: {error}")))?;
            Ok(certificate)
        })
        .collect::<Result<Vec<_>, _>>()?;
    if certificates.is_empty() { Err(refuse("holds no certificate".to_owned())) } else { Ok((pem, certificates)) }
}

fn usable(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
    RootCertStore::empty().add(certificate.clone())
}

/// Returns the error of TLS, if TLS is the cause: waiting would not mend it.
#[must_use]
pub fn failure<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error, what caused it, and so on. An `io::Error` hides its own inside.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inside.map(|inside| inside as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn authority() -> String {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").pem()
    }

    fn file(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("writes");
        file
    }

    #[test]
    fn the_authorities_of_a_file_are_all_trusted_and_no_others() {
        let content = format!("# of the network\n{}\n{}", authority(), authority());
        let file = file(&content);
        assert_eq!(roots("ca_file", Some(file.path())).expect("roots").len(), 2);
        assert_eq!(certificates("ca_file", Some(file.path())).expect("certificates").len(), 2);
        assert_eq!(pem("ca_file", file.path()), Ok(content.into_bytes()));
        assert!(client_config(Some(file.path())).is_ok());
    }

    #[test]
    fn a_file_without_usable_certificates_is_refused_by_its_name_and_that_of_the_option() {
        let envelope = |text: &str| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        let one_of_two = authority() + &envelope("aGVsbG8=");
        for (content, problem) in [
            (String::new(), "holds no certificate"),
            ("hello".to_owned(), "holds no certificate"),
            (envelope("!"), "is malformed"),
            (envelope("aGVsbG8="), "holds a certificate that cannot be used"),
            (one_of_two, "holds a certificate that cannot be used"),
        ] {
            let file = file(&content);
            let path = file.path().display();
            for error in [
                roots("sslrootcert", Some(file.path())).expect_err("refused"),
                pem("sslrootcert", file.path()).expect_err("refused"),
            ] {
                let expected = format!("setting `sslrootcert` names {path}, which {problem}");
                assert!(error.to_string().starts_with(&expected), "{error}");
                assert!(error.to_string().ends_with("; name a PEM file of root certificates"), "{error}");
            }
        }
        let missing = roots("ca_file", Some(Path::new("/no/such.pem"))).expect_err("refused").to_string();
        assert!(missing.starts_with("setting `ca_file` names /no/such.pem, which cannot be read: "), "{missing}");
    }

    #[test]
    fn an_identity_is_a_certificate_and_a_key() {
        let pair = KeyPair::generate().expect("a key");
        let certificate =
            CertificateParams::new(Vec::new()).expect("parameters").self_signed(&pair).expect("a certificate");
        let (certificate, key) = (file(&certificate.pem()), file(&pair.serialize_pem()));
        let read = |certificate: &Path, key: &Path| {
            identity(("sslcert", certificate), ("sslkey", key)).map(|(chain, _)| chain.len())
        };
        assert_eq!(read(certificate.path(), key.path()), Ok(1));
        for (certificate, key, problem) in [
            (key.path(), key.path(), "`sslcert` names"),
            (certificate.path(), certificate.path(), "`sslkey` names"),
            (Path::new("/no/such"), key.path(), "`sslcert` names /no/such, which cannot be read"),
            (certificate.path(), Path::new("/no/such"), "`sslkey` names /no/such, which cannot be read"),
        ] {
            let error = read(certificate, key).expect_err("refused").to_string();
            assert!(error.contains(problem) && !error.contains("BEGIN"), "{error}");
        }
    }

    #[test]
    fn a_failure_of_tls_is_found_wherever_it_hides() {
        let expired = || rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let io = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        assert_eq!(failure(&expired()), Some(&expired()));
        assert_eq!(failure(&io(expired())), Some(&expired()));
        assert_eq!(failure(&io::Error::other(io(expired()))), Some(&expired()));
        assert_eq!(failure(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }
}
