//! The service's side of a database: connections of its own, as the services of users have them.

mod mysql;
mod postgres;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::failure::Failure;

pub(crate) use mysql::mysql_options;
pub(crate) use postgres::postgres_pool;

/// The authorities in a PEM file, or those of the operating system.
fn root_certificates(file: Option<&str>) -> Result<Vec<CertificateDer<'static>>, Failure> {
    const DOING: &str = "read the root certificates";
    let Some(path) = file else { return Ok(rustls_native_certs::load_native_certs().certs) };
    let certificates = CertificateDer::pem_file_iter(path).map_err(Failure::during(DOING))?;
    certificates.collect::<Result<_, _>>().map_err(Failure::during(DOING))
}
