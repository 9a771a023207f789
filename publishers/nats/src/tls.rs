use std::path::Path;
use std::sync::Arc;

use pillarbox_core::publisher::PublishError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// TLS that trusts the certificate authorities in `ca_file`, or the system's. The cryptography is handed in here, so that it
/// works in a process with any default provider or none.
pub(crate) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, PublishError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| PublishError::misconfigured(format!("TLS cannot be set up: {error}")))?;
    let roots = match ca_file {
        Some(path) => from_file(path)?,
        None => from_the_system()?,
    };
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn from_the_system() -> Result<RootCertStore, PublishError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(PublishError::misconfigured(
            "the system has no root certificates; install its package `ca-certificates`, or name a PEM file with `ca_file`",
        ));
    }
    Ok(roots)
}

fn from_file(path: &Path) -> Result<RootCertStore, PublishError> {
    let unusable = |problem: String| {
        let file = path.display();
        PublishError::misconfigured(format!("the certificates in {file} {problem}; name a PEM file with `ca_file`"))
    };
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(format!("cannot be read: {error}")))?;
    for certificate in certificates {
        certificate
            .map_err(|error| unusable(format!("are malformed: {error}")))
            .and_then(|der| roots.add(der).map_err(|error| unusable(format!("are unusable: {error}"))))?;
    }
    if roots.is_empty() {
        return Err(unusable("are none".to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_is_named_with_the_remedy() {
        let none = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (path, problem) in [("/no/such.pem", "cannot be read"), (none, "are none")] {
            let error = client_config(Some(Path::new(path))).expect_err("refused").to_string();
            assert!(error.contains(path) && error.contains(problem) && error.contains("`ca_file`"), "{error}");
        }
    }
}
