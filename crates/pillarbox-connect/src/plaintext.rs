use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::is_this_host;

/// Refuses a connection without TLS to another machine, unless the option `plaintext` says that the network is trusted.
///
/// `option` holds the URL, and `tls` is what a URL with TLS begins with: `amqps`.
///
/// # Errors
/// When it is refused.
pub fn refuse_plaintext(option: &'static str, tls: &str, host: &str, plaintext: bool) -> Result<(), ConfigError> {
    if plaintext || is_this_host(host) {
        return Ok(());
    }
    Err(ConfigError::new(
        option,
        format!("is a connection without TLS to {host}, another machine"),
        format!("write `{tls}://` for TLS, or set `plaintext = true` if the network is trusted"),
    ))
}

/// True if one of these hosts is another machine: a connection without TLS then takes a URL that asks for it.
///
/// For clients that could also negotiate, as those of databases do: what a server, or somebody in front of it, can talk them out
/// of protects nothing.
pub fn needs_tls<'a>(hosts: impl IntoIterator<Item = &'a str>) -> bool {
    hosts.into_iter().any(|host| !is_this_host(host))
}

/// The error of a server that offers no TLS. `plaintext` is the parameter of the URL that does without: `sslmode=disable`.
#[must_use]
pub fn no_tls(plaintext: &str) -> String {
    format!("the server offers no TLS; turn it on, or write `{plaintext}` in the URL if the network is trusted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_elsewhere_needs_tls() {
        for (hosts, needed) in [
            (&["localhost", "127.0.0.1", "::1"][..], false),
            (&[], false),
            (&["localhost", "db.internal"], true),
            (&["0.0.0.0"], true),
            (&["10.0.0.7"], true),
        ] {
            assert_eq!(needs_tls(hosts.iter().copied()), needed, "{hosts:?}");
        }
    }

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for host in
            ["localhost", "LOCALHOST.", "db.localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "::ffff:127.0.0.1"]
        {
            assert_eq!(refuse_plaintext("url", "amqps", host, false), Ok(()), "{host}");
        }
        for host in
            ["broker.internal", "localhost.example.com", "10.0.0.7", "0.0.0.0", "::", "2130706433", "notlocalhost"]
        {
            let error = refuse_plaintext("url", "amqps", host, false).expect_err(host).to_string();
            assert!(error.starts_with(&format!("setting `url` is a connection without TLS to {host}, ")), "{error}");
            assert!(error.contains("`amqps://`") && error.contains("`plaintext = true`"), "{error}");
            assert_eq!(refuse_plaintext("url", "amqps", host, true), Ok(()), "{host}");
        }
    }
}
