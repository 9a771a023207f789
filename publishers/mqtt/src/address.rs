use std::fmt;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use url::Url;

/// What the URL says.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
}

const EXAMPLE: &str = "write it as `mqtts://HOST:PORT`";

impl Address {
    /// Reads a URL. Its text stays out of the errors, since it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, ConfigError> {
        let refuse = |problem: String| ConfigError::new("url", problem, EXAMPLE);
        let url = Url::parse(url).map_err(|error| refuse(format!("is no URL ({error})")))?;
        let (tls, port) = match url.scheme() {
            "mqtt" => (false, 1883),
            "mqtts" => (true, 8883),
            other => return Err(refuse(format!("begins with {other:?}, which is not MQTT"))),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("has a query or a fragment".to_owned()));
        }
        // The address of IPv6 without its brackets: it is resolved as it is written here.
        let host = match url.host_str() {
            Some(host) if !host.is_empty() => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            _ => return Err(refuse("has no host".to_owned())),
        };
        if !matches!(url.path(), "" | "/") {
            return Err(refuse("has a path; topics are named by the route".to_owned()));
        }
        let text = |part: &str| {
            percent_encoding::percent_decode_str(part)
                .decode_utf8()
                .map(String::from)
                .map_err(|_| refuse("has a user or a password that is no text".to_owned()))
        };
        let username = if url.username().is_empty() { None } else { Some(text(url.username())?) };
        let password = url.password().map(text).transpose()?.map(Secret::from);
        Ok(Self { tls, host, port: url.port().unwrap_or(port), username, password })
    }
}

/// For people, without credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_shown_without_its_credentials() {
        let shown = |url: &str| Address::parse(url).map(|address| address.to_string()).expect("a URL");
        assert_eq!(shown("mqtt://localhost"), "mqtt://localhost:1883");
        assert_eq!(shown("mqtts://u:p%40ss@far.example/"), "mqtts://far.example:8883");
        assert_eq!(shown("mqtt://[::1]:7000"), "mqtt://[::1]:7000");
        let address = Address::parse("mqtt://u%3A:p%40ss@localhost").expect("a URL");
        assert_eq!(address.username.as_deref(), Some("u:"));
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("p@ss"));
    }
}
