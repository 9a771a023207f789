//! The configuration file on the disk beside the one that is in force, for a doctor.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use pillarbox_doctor::{Configuration, InForce};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::file::digest_at;
use crate::report::ConfigurationReport;

/// The time that a relay may take to tell its status.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a status.
const STATUS: usize = 4 << 20;

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
    Configuration { file: digest_of(&path).await, relay: Ok(report.into()) }
}

/// A file as it is, beside the relay that answers at the address of its `relay.listen`.
pub(crate) async fn beside_relay(path: PathBuf, listen: SocketAddr) -> Configuration {
    let asked = timeout(PATIENCE, ask(reached_at(listen))).await;
    let relay = match asked {
        Ok(answer) => answer.map(InForce::from),
        Err(_elapsed) => Err(format!("it has not answered within {PATIENCE:?}")),
    };
    let relay = relay.map_err(|problem| format!("no relay tells its status at http://{listen}/status: {problem}"));
    Configuration { file: digest_of(&path).await, relay }
}

async fn digest_of(path: &Path) -> Result<String, String> {
    let path = path.to_owned();
    let read = spawn_blocking(move || digest_at(&path).map_err(|error| error.to_string()));
    read.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The address at which this host reaches who listens at an address.
fn reached_at(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// What is read of a status.
#[derive(Deserialize)]
struct Status {
    configuration: ConfigurationReport,
}

async fn ask(address: SocketAddr) -> Result<ConfigurationReport, String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let uri = format!("http://{address}/status").parse().map_err(|_| "the address cannot be asked".to_owned())?;
    let response = client.get(uri).await.map_err(|error| error.to_string())?;
    let body = to_bytes(Body::new(response.into_body()), STATUS).await.map_err(|error| error.to_string())?;
    let status: Status =
        serde_json::from_slice(&body).map_err(|_| "what answers there is no relay with a file".to_owned())?;
    Ok(status.configuration)
}
