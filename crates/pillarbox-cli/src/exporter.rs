//! The address at which a long-running command serves its health and metrics.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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
}
