use std::net::IpAddr;

/// True if a host of a URL is this machine: `localhost`, a name under it, or a loopback address.
///
/// A publisher refuses a connection without TLS to any other host, unless its option `plaintext` says that the network is
/// trusted.
///
/// ```
/// use pillarbox_core::publisher::is_this_host;
///
/// assert!(is_this_host("localhost") && is_this_host("127.0.0.1") && is_this_host("[::1]"));
/// assert!(!is_this_host("broker.internal") && !is_this_host("10.0.0.7"));
/// ```
#[must_use]
pub fn is_this_host(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}
