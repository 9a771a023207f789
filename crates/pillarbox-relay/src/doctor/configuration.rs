//! The configuration file on the disk beside the one that is in force, for a doctor.

use std::net::SocketAddr;
use std::path::PathBuf;

use pillarbox_doctor::{Configuration, InForce, NoAnswer};
use tokio::task::spawn_blocking;

use super::status;
use crate::file::{FileFingerprint, RelayFile};
use crate::report::ConfigurationReport;

impl From<ConfigurationReport> for InForce {
    fn from(report: ConfigurationReport) -> Self {
        let ConfigurationReport { read_at, digest, refused } = report;
        Self { digest, read_at, refused: refused.map(|refused| (refused.at, refused.problem)) }
    }
}

impl From<ConfigurationReport> for pillarbox_console::ConfigurationFile {
    fn from(report: ConfigurationReport) -> Self {
        let ConfigurationReport { read_at, refused, .. } = report;
        Self { read_at, refused: refused.map(|refused| (refused.at, refused.problem)) }
    }
}

/// A file as it is, beside the relay of this process.
pub(crate) async fn beside(path: PathBuf, report: ConfigurationReport) -> Configuration {
    compare(path, None, Ok(report)).await
}

/// A file as it is, beside the relay that answers at the address of its `relay.listen`. `unusable` is a problem of it that is known.
pub(super) async fn beside_relay(path: PathBuf, unusable: Option<String>, listen: Option<SocketAddr>) -> Configuration {
    let told = match status::of_relay(listen).await {
        Ok(status) => status.configuration.ok_or_else(|| "that relay works by no file".to_owned()),
        Err(NoAnswer::Absent(reason) | NoAnswer::NotRunning(reason) | NoAnswer::Silent(reason)) => Err(reason),
    };
    compare(path, unusable, told).await
}

async fn compare(path: PathBuf, unusable: Option<String>, relay: Result<ConfigurationReport, String>) -> Configuration {
    let read = move || {
        let unusable = unusable.or_else(|| RelayFile::read(&path).err().map(|error| error.to_string()));
        (FileFingerprint::read(&path).map_err(|error| error.to_string()), unusable)
    };
    let (fingerprint, unusable) = spawn_blocking(read).await.unwrap_or_else(|error| (Err(error.to_string()), None));
    let read_at = relay.as_ref().ok().and_then(|report| humantime::parse_rfc3339(&report.read_at).ok());
    let written_since = match (&fingerprint, read_at) {
        (Ok(fingerprint), Some(read_at)) => fingerprint.written_after(read_at),
        _ => Vec::new(),
    };
    let (file, relay) = (fingerprint.map(|fingerprint| fingerprint.digest), relay.map(InForce::from));
    Configuration { file, unusable, written_since, relay }
}
