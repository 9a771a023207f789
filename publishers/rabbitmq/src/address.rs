use std::fmt;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use url::Url;

/// What the URL says.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) vhost: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
}

const EXAMPLE: &str = "write it as `amqps://HOST:PORT/VHOST`";
/// The longest text of AMQP's short kind, in bytes.
const SHORT: usize = 255;

impl Address {
    /// Reads a URL. Its text stays out of the errors, since it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, ConfigError> {
        let refuse = |problem: String| ConfigError::new("url", problem, EXAMPLE);
        let url = Url::parse(url).map_err(|error| refuse(format!("is no URL ({error})")))?;
        let (tls, port) = match url.scheme() {
            "amqp" => (false, 5672),
            "amqps" => (true, 5671),
            other => return Err(refuse(format!("begins with {other:?}, which is not AMQP"))),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("has a query or a fragment".to_owned()));
        }
        // The address of IPv6 without its brackets: it is resolved as it is written here.
        let host = match url.host_str() {
            Some(host) if !host.is_empty() => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            _ => return Err(refuse("has no host".to_owned())),
        };
        let text = |what: &str, part: &str| {
            percent_encoding::percent_decode_str(part)
                .decode_utf8()
                .map(String::from)
                .map_err(|_| refuse(format!("has a {what} that is no text")))
        };
        let vhost = match url.path().strip_prefix('/').unwrap_or_default() {
            // Nobody who writes a slash at the end means the virtual host without a name.
            "" => "/".to_owned(),
            path if path.contains('/') => {
                return Err(refuse("has a path of several parts; a `/` in a virtual host is written `%2F`".to_owned()));
            }
            path => text("virtual host", path)?,
        };
        if vhost.len() > SHORT {
            return Err(refuse(format!("has a virtual host of more than {SHORT} bytes")));
        }
        let username = if url.username().is_empty() { None } else { Some(text("user", url.username())?) };
        let password = url.password().map(|password| text("password", password)).transpose()?.map(Secret::from);
        Ok(Self { tls, host, port: url.port().unwrap_or(port), vhost, username, password })
    }
}

/// For people, without credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, vhost, .. } = self;
        let scheme = if self.tls { "amqps" } else { "amqp" };
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{host}{close}:{port}")?;
        if vhost == "/" { Ok(()) } else { write!(f, "/{vhost}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_shown_without_its_credentials() {
        let table = [
            ("amqp://localhost", "/", "amqp://localhost:5672"),
            ("amqp://localhost/", "/", "amqp://localhost:5672"),
            ("amqp://localhost/%2f", "/", "amqp://localhost:5672"),
            ("amqps://u:p%40ss@far.example:7000/shop", "shop", "amqps://far.example:7000/shop"),
            ("amqps://[::1]/a%2Fb", "a/b", "amqps://[::1]:5671/a/b"),
        ];
        for (url, vhost, shown) in table {
            let address = Address::parse(url).expect("a URL");
            assert_eq!((&*address.vhost, &*address.to_string()), (vhost, shown));
        }
        let address = Address::parse("amqp://u%3A:p%40ss@localhost").expect("a URL");
        assert_eq!(address.username.as_deref(), Some("u:"));
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("p@ss"));
    }
}
