use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mysql_async::OptsBuilder;
use percent_encoding::percent_decode_str;
use pillarbox_connect::{needs_tls, unknown_parameter};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use url::{Host, Url};

use crate::tls::{Identity, SslMode, Tls};

/// The address of a database, its credentials and the certificates to trust, as read from a URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) socket: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) tls: Tls,
    pub(crate) connect_timeout: Option<Duration>,
}

const PARAMETERS: [&str; 6] = ["connect_timeout", "socket", "ssl-ca", "ssl-cert", "ssl-key", "ssl-mode"];

impl Target {
    /// Reads a URL. Nothing is connected to, and no error repeats a part of the URL that could be a password.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let url = Url::parse(url).map_err(|error| refuse(&format!("cannot be read: {error}"), EXAMPLE))?;
        if !matches!(url.scheme(), "mysql" | "mariadb") || !url.has_authority() {
            return Err(refuse("does not start with `mysql://` or `mariadb://`", EXAMPLE));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => decode("host", name)?,
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => String::new(),
        };
        let mut target = Self {
            host,
            port: url.port().unwrap_or(3306),
            socket: None,
            user: some(decode("user", url.username())?),
            password: url.password().map(|password| decode("password", password)).transpose()?,
            database: some(decode("database", url.path().trim_start_matches('/'))?),
            tls: Tls::default(),
            connect_timeout: None,
        };
        let (mut certificate, mut key) = (None, None);
        for (name, value) in url.query_pairs() {
            match &*name {
                "ssl-cert" => certificate = Some(PathBuf::from(&*value)),
                "ssl-key" => key = Some(PathBuf::from(&*value)),
                "connect_timeout" => target.connect_timeout = Some(seconds(&name, &value)?),
                "socket" => target.socket = Some(value.into_owned()),
                "ssl-ca" => target.tls.ca_file = Some(PathBuf::from(&*value)),
                "ssl-mode" => target.tls.mode = SslMode::parse(&value)?,
                name => return Err(unknown(name)),
            }
        }
        if target.host.is_empty() && target.socket.is_none() {
            return Err(refuse("names no host", EXAMPLE));
        }
        target.tls.identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => return Err(refuse("has one of `ssl-cert` and `ssl-key`", "name both: the certificate and its key")),
        };
        // A mode that falls back to plaintext protects nothing against an attacker in between.
        if target.tls.mode == SslMode::Preferred && target.leads_elsewhere() {
            target.tls.mode = SslMode::Required;
        }
        target.tls.check()?;
        Ok(target)
    }

    /// The options of the driver.
    pub(crate) fn options(&self) -> Result<OptsBuilder, StoreError> {
        Ok(OptsBuilder::default()
            .ip_or_hostname(self.host.clone())
            .tcp_port(self.port)
            .socket(self.socket.clone())
            .user(self.user.clone())
            .pass(self.password.clone())
            .db_name(self.database.clone())
            .ssl_opts(self.tls.options()?)
            // A server's socket is of another machine's file system, as often as not.
            .prefer_socket(false))
    }

    /// True if the database is on another machine.
    fn leads_elsewhere(&self) -> bool {
        self.socket.is_none() && needs_tls([&*self.host])
    }

    /// The address of the database, for errors and logs: `localhost:3306/shop`.
    pub(crate) fn address(&self) -> String {
        address(self.socket.as_deref(), &self.host, self.port, self.database.as_deref())
    }
}

/// The address of a database, for errors and logs.
pub(crate) fn address(socket: Option<&str>, host: &str, port: u16, database: Option<&str>) -> String {
    let database = database.unwrap_or_default();
    match socket {
        Some(path) => format!("{path}/{database}"),
        None if host.contains(':') => format!("[{host}]:{port}/{database}"),
        None => format!("{host}:{port}/{database}"),
    }
}

// The password is left out.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address())
            .field("user", &self.user)
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

const EXAMPLE: &str = "write it like `mysql://user:password@host:3306/database?ssl-mode=verify_identity`, with special \
                       characters percent-encoded";

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn decode(part: &str, text: &str) -> Result<String, StoreError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| refuse(&format!("has a {part} that is not UTF-8"), "percent-encode it as UTF-8"))
}

fn seconds(name: &str, value: &str) -> Result<Duration, StoreError> {
    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
    let refused = || refuse(&format!("has a parameter `{name}` that is no number of seconds"), "give it at least 1");
    seconds.map(Duration::from_secs).ok_or_else(refused)
}

fn unknown(name: &str) -> StoreError {
    let error = unknown_parameter(name, &PARAMETERS);
    refuse(error.problem(), error.remedy())
}

pub(crate) fn refuse(problem: &str, remedy: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "use the MySQL URL", format!("it {problem}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn addresses_are_those_of_the_url() {
        let table = [
            ("mysql://u:p@h/d", "h:3306/d"),
            ("mariadb://u@h:3307", "h:3307/"),
            ("mysql://u:a%40b%2Fc@h/d", "h:3306/d"),
            ("mysql://u@[::1]:3307/d", "[::1]:3307/d"),
            ("mysql://u@h/d?socket=/run/mysqld/mysqld.sock", "/run/mysqld/mysqld.sock/d"),
        ];
        for (url, address) in table {
            assert_eq!(target(url).address(), address, "{url}");
        }
    }

    #[test]
    fn every_part_is_read() {
        let target =
            target("mysql://a%20b:p%40ss@db.internal/shop?connect_timeout=3&ssl-mode=verify_identity&ssl-ca=%2Fca.pem");
        assert_eq!(target.user.as_deref(), Some("a b"));
        assert_eq!(target.password.as_deref(), Some("p@ss"));
        assert_eq!(target.database.as_deref(), Some("shop"));
        assert_eq!(target.connect_timeout, Some(Duration::from_secs(3)));
        let tls = Tls { mode: SslMode::VerifyIdentity, ca_file: Some("/ca.pem".into()), identity: None };
        assert_eq!(target.tls, tls);
        assert!(!format!("{target:?}").contains("p@ss"));
    }

    #[test]
    fn another_machine_is_reached_with_tls_unless_the_url_says_disabled() {
        use SslMode::{Disabled, Preferred, Required};
        for (url, mode) in [
            ("mysql://u@h/d", Required),
            ("mariadb://u@10.0.0.7/d?ssl-mode=preferred", Required),
            ("mysql://u@h/d?ssl-mode=disabled", Disabled),
            ("mysql://u@localhost/d", Preferred),
            ("mysql://u@127.0.0.1/d?ssl-mode=preferred", Preferred),
            ("mysql://u@[::1]/d", Preferred),
            ("mysql://u@h/d?socket=/run/mysqld.sock", Preferred),
        ] {
            assert_eq!(target(url).tls.mode, mode, "{url}");
        }
    }

    #[test]
    fn errors_name_the_parameter_and_the_remedy() {
        let table = [
            ("http://h", "mysql://"),
            ("mysql:h", "mysql://"),
            ("mysql:///d", "names no host"),
            ("mysql://u@h/d?sslmode=required", "`sslmode`"),
            ("mysql://u@h/d?ssl-mode=on", "verify_identity"),
            ("mysql://u@h/d?connect_timeout=soon", "connect_timeout"),
            ("mysql://u@h/d?ssl-cert=/c", "name both"),
            ("mysql://u@h/d?ssl-key=/k", "name both"),
            ("mysql://u@h/d?ssl-ca=/c", "`ssl-mode=verify_identity`"),
            ("mysql://u@localhost/d?ssl-ca=/c", "`ssl-mode=verify_identity`"),
            ("mysql://u@h/d?ssl-ca=/c&ssl-mode=required", "`ssl-mode=verify_identity`"),
            ("mysql://u@h/d?ssl-ca=/c&ssl-mode=disabled", "`ssl-mode=verify_identity`"),
            ("mysql://u@h/d?ssl-mode=disabled&ssl-cert=/c&ssl-key=/k", "without TLS; write `ssl-mode=required`"),
            ("mysql://%ff@h/d", "user"),
        ];
        for (url, part) in table {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
