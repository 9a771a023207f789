//! The service's side of a database: connections of its own, as the services of users have them.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::failure::Failure;

#[cfg(feature = "mysql")]
pub use mysql::mysql_options;
#[cfg(feature = "postgres")]
pub use postgres::postgres_pool;

/// The authorities in a PEM file, or those of the operating system.
fn root_certificates(file: Option<&str>) -> Result<Vec<CertificateDer<'static>>, Failure> {
    const DOING: &str = "read the root certificates";
    let Some(path) = file else { return Ok(rustls_native_certs::load_native_certs().certs) };
    let certificates = CertificateDer::pem_file_iter(path).map_err(Failure::during(DOING))?;
    certificates.collect::<Result<_, _>>().map_err(Failure::during(DOING))
}
