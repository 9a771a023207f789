//! The endpoint at which Prometheus collects the metrics of a command that runs on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use metrics_exporter_prometheus::BuildError;
use pillarbox_relay::prometheus;

/// The endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be served at http://{address}: {problem}")]
pub(crate) struct ExporterError {
    address: SocketAddr,
    problem: String,
}

/// Serves what is measured from now on at `http://ADDRESS/metrics`, for as long as the process runs.
///
/// Call it in the runtime and before the outbox starts: an outbox makes the handles of its metrics when it starts.
pub(crate) fn install(address: SocketAddr) -> Result<(), ExporterError> {
    let failed = |error| ExporterError { address, problem: problem(error) };
    let builder = prometheus().map_err(failed)?;
    builder.with_http_listener(address).install().map_err(failed)
}

fn problem(error: BuildError) -> String {
    match error {
        BuildError::FailedToCreateHTTPListener(why) => format!("{why}; choose another address or port"),
        BuildError::FailedToSetGlobalRecorder(_) => "this process serves metrics already".to_owned(),
        other => other.to_string(),
    }
}

/// Reads an address to serve at: `IP:PORT`, or a port alone, which is served to this host only.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let of_this_host = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().or_else(|_| text.parse().map(of_this_host));
    match address {
        Ok(address) if address.port() != 0 => Ok(address),
        _ => Err("write a port, such as 9187, to serve this host only, or IP:PORT, such as 0.0.0.0:9187".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn a_port_alone_is_for_this_host_only() {
        assert_eq!(address("9187").map(|address| address.to_string()), Ok("127.0.0.1:9187".to_owned()));
        for text in ["0.0.0.0:9187", "[::1]:9187"] {
            assert_eq!(address(text).map(|address| address.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "0", "127.0.0.1", "127.0.0.1:0", ":9187", "localhost:9187", "70000"] {
            assert!(address(text).is_err_and(|error| error.contains("0.0.0.0:9187")), "{text}");
        }
    }

    /// One test, since a process has one recorder.
    #[tokio::test]
    async fn an_address_that_is_taken_is_named_and_a_free_one_serves_prometheus_names() {
        let taken = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = taken.local_addr().expect("has an address");
        let error = install(address).expect_err("taken").to_string();
        assert!(error.contains(&format!("http://{address}: ")) && error.contains("in use"), "{error}");

        drop(taken);
        install(address).expect("serves");
        metrics::describe_gauge!("pillarbox.lag.oldest", metrics::Unit::Seconds, "The lag.");
        metrics::gauge!("pillarbox.lag.oldest").set(1.5);
        metrics::counter!("pillarbox.enqueue.hot.dropped", "table" => "outbox_event").increment(2);
        metrics::describe_histogram!("pillarbox.claim.duration", metrics::Unit::Seconds, "The claim.");
        metrics::histogram!("pillarbox.claim.duration").record(0.002);
        metrics::histogram!("pillarbox.claim.rows").record(0);
        metrics::histogram!("pillarbox.route.publish.messages").record(200);
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("asks");
        let mut page = String::new();
        stream.read_to_string(&mut page).await.expect("answers");
        for line in [
            "HTTP/1.1 200 OK",
            "pillarbox_lag_oldest_seconds 1.5",
            "pillarbox_enqueue_hot_dropped_total{table=\"outbox_event\"} 2",
            "pillarbox_claim_duration_seconds_bucket{le=\"0.0025\"} 1",
            "pillarbox_claim_duration_seconds_bucket{le=\"0.001\"} 0",
            "pillarbox_claim_rows_bucket{le=\"0\"} 1",
            "pillarbox_route_publish_messages_bucket{le=\"300\"} 1",
        ] {
            assert!(page.lines().any(|found| found.trim_end() == line), "{line} in:\n{page}");
        }
        let error = install(address).expect_err("one recorder").to_string();
        assert!(error.starts_with(&format!("metrics cannot be served at http://{address}: ")), "{error}");
    }
}
