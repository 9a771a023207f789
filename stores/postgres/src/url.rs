use std::borrow::Cow;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use pillarbox_connect::{needs_tls, unknown_parameter};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};

use crate::connector::Connector;
use crate::tls::{Identity, Roots, Tls, Verify};

/// The address of a database, its credentials and the certificates to trust, as read from a URL.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) pooler: bool,
    /// One's own connector, in the place of `tls`.
    pub(crate) connector: Option<Connector>,
}

/// A peer that vanished without a word is noticed within about a minute.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_RETRIES: u32 = 3;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Parameters that the driver understands; the others are ours, or nobody's.
const DRIVER_PARAMETERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];
const OUR_PARAMETERS: [&str; 5] = ["pgbouncer", "sslcert", "sslkey", "sslmode", "sslrootcert"];

impl Target {
    /// Reads a URL as libpq's users write it. Nothing is connected to, and no error repeats a part of the URL that could
    /// be a password.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (base, query) = split(url)?;
        let mut kept: Vec<(&str, &str)> = Vec::new();
        let (mut sslmode, mut sslrootcert, mut pooler) = (Cow::Borrowed("prefer"), None, false);
        let (mut sslcert, mut sslkey) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(refuse(
                    "has a parameter without a value",
                    "write parameters as `name=value`, joined by `&`",
                ));
            };
            match name {
                "sslmode" => sslmode = decode(name, value)?,
                "sslcert" => sslcert = Some(decode(name, value)?.into_owned()),
                "sslkey" => sslkey = Some(decode(name, value)?.into_owned()),
                "sslrootcert" => sslrootcert = Some(decode(name, value)?.into_owned()),
                "pgbouncer" => pooler = boolean(name, &decode(name, value)?)?,
                "connect_timeout" => {
                    // The driver passes over what is less, where others mean "for ever" by it.
                    if !decode(name, value)?.parse::<i64>().is_ok_and(|seconds| seconds > 0) {
                        return Err(refuse(
                            "has a parameter `connect_timeout` that is no time to wait",
                            "write whole seconds, 1 or more, such as `connect_timeout=10`",
                        ));
                    }
                    kept.push((name, value));
                }
                name if DRIVER_PARAMETERS.contains(&name) => kept.push((name, value)),
                name => return Err(unknown(name)),
            }
        }
        let mut config = driver_config(base, &kept)?;
        complete(&mut config, &kept);
        let mut tls = tls(&sslmode, sslrootcert, &mut config)?;
        tls.identity = match (sslcert, sslkey) {
            (Some(certificate), Some(key)) => Some(Identity { certificate: certificate.into(), key: key.into() }),
            (None, None) => None,
            _ => return Err(refuse("has one of `sslcert` and `sslkey`", "name both: the certificate and its key")),
        };
        if tls.identity.is_some() && sslmode == "disable" {
            return Err(refuse(
                "names a client's certificate, by `sslcert` and `sslkey`, for a connection without TLS",
                "write `sslmode=require` or more, or leave the certificate out",
            ));
        }
        Ok(Self { config, tls, pooler, connector: None })
    }

    /// A configuration that a program has put together itself, but for the settings that every connection of a store needs.
    pub(crate) fn from_config(mut config: Config, connector: Connector) -> Self {
        if config.get_application_name().is_none() {
            config.application_name("pillarbox");
        }
        if config.get_ssl_mode() == SslMode::Prefer && leads_elsewhere(&config) {
            config.ssl_mode(SslMode::Require);
        }
        // The driver's defaults would notice after two hours that the peer is gone.
        let driver = Config::new();
        if config.get_keepalives_idle() == driver.get_keepalives_idle() {
            config.keepalives_idle(KEEPALIVES_IDLE);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(KEEPALIVES_INTERVAL);
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(KEEPALIVES_RETRIES);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_USER_TIMEOUT);
        }
        let tls = Tls { verify: Verify::Nothing, roots: Roots::System, direct: false, identity: None };
        Self { config, tls, pooler: false, connector: Some(connector) }
    }

    /// The address of the database, for errors and logs: `localhost:5432/shop`.
    pub(crate) fn address(&self) -> String {
        let config = &self.config;
        let names: Vec<String> = if config.get_hosts().is_empty() {
            config.get_hostaddrs().iter().map(ToString::to_string).collect()
        } else {
            config.get_hosts().iter().map(host_name).collect()
        };
        let ports = config.get_ports();
        let port = |i: usize| ports.get(i).or(ports.first()).copied().unwrap_or(5432);
        let host = |(i, name): (usize, &String)| match name.contains(':') {
            true => format!("[{name}]:{}", port(i)),
            false => format!("{name}:{}", port(i)),
        };
        let hosts: Vec<String> = names.iter().enumerate().map(host).collect();
        // As the server does, the database defaults to the user's name.
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// Splits off the parameters. As in libpq, `?` may stand unescaped in a password, `/` may not.
fn split(url: &str) -> Result<(&str, &str), StoreError> {
    let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
        return Err(refuse("does not start with `postgres://` or `postgresql://`", EXAMPLE));
    };
    let hosts = match rest.find(['@', '/']) {
        Some(at) if rest[at..].starts_with('@') => at + 1,
        _ => 0,
    };
    let start = url.len() - rest.len() + hosts;
    Ok(match url[start..].find('?') {
        Some(question) => (&url[..start + question], &url[start + question + 1..]),
        None => (url, ""),
    })
}

/// Lets the driver read everything that it knows.
fn driver_config(base: &str, kept: &[(&str, &str)]) -> Result<Config, StoreError> {
    // The driver takes what precedes the first `@` for credentials, wherever that is. The rest would be shown as a host.
    if base.matches('@').count() > 1 {
        return Err(refuse("has more than one `@`", "write it as %40 in a user, a password or a database's name"));
    }
    let query: Vec<String> = kept.iter().map(|(name, value)| format!("{name}={}", value.replace('@', "%40"))).collect();
    let config: Config = format!("{base}?{}", query.join("&")).parse().map_err(|error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        refuse(&format!("cannot be read: {cause}"), EXAMPLE)
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(refuse("names no host", EXAMPLE));
    }
    Ok(config)
}

/// Fills in the parts that the URL leaves open.
fn complete(config: &mut Config, kept: &[(&str, &str)]) {
    let given = |name: &str| kept.iter().any(|(kept, _)| *kept == name);
    if !given("application_name") {
        config.application_name("pillarbox");
    }
    if !given("keepalives_idle") {
        config.keepalives_idle(KEEPALIVES_IDLE);
    }
    if !given("keepalives_interval") {
        config.keepalives_interval(KEEPALIVES_INTERVAL);
    }
    if !given("keepalives_retries") {
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
    if !given("tcp_user_timeout") {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    // Several hosts are a primary and its standbys; the outbox has work for the primary only.
    if !given("target_session_attrs") && config.get_hosts().len().max(config.get_hostaddrs().len()) > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn tls(sslmode: &str, sslrootcert: Option<String>, config: &mut Config) -> Result<Tls, StoreError> {
    let verify = match sslmode {
        "disable" | "allow" | "prefer" | "require" => Verify::Nothing,
        "verify-ca" => Verify::Chain,
        "verify-full" => Verify::ChainAndName,
        _ => {
            return Err(refuse(
                "has a parameter `sslmode` that is unknown",
                "use disable, allow, prefer, require, verify-ca or verify-full",
            ));
        }
    };
    // There is no TLS on a Unix socket, and nobody in between either.
    let sockets_only =
        config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
    config.ssl_mode(match sslmode {
        _ if sockets_only => SslMode::Disable,
        "disable" => SslMode::Disable,
        // A mode that falls back to plaintext protects nothing against an attacker in between.
        "allow" | "prefer" if !leads_elsewhere(config) => SslMode::Prefer,
        _ => SslMode::Require,
    });
    let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
    let mut tls = Tls { verify, roots: Roots::System, direct, identity: None };
    if let Some(path) = sslrootcert {
        let roots = if path == "system" { Roots::System } else { Roots::File(path.into()) };
        tls.trust(roots, config.get_ssl_mode());
    }
    Ok(tls)
}

/// True if a host, or the address that the URL names in its place, is another machine.
fn leads_elsewhere(config: &Config) -> bool {
    let addresses: Vec<String> = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    if !addresses.is_empty() {
        return needs_tls(addresses.iter().map(String::as_str));
    }
    needs_tls(config.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(name) => Some(name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    }))
}

const EXAMPLE: &str = "write it like `postgres://user:password@host:5432/database?sslmode=verify-full`, with special \
                       characters percent-encoded";

fn decode<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, StoreError> {
    percent_decode_str(value)
        .decode_utf8()
        .map_err(|_| refuse(&format!("has a parameter `{name}` that is not UTF-8"), "percent-encode it as UTF-8"))
}

fn boolean(name: &str, value: &str) -> Result<bool, StoreError> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(refuse(&format!("has a parameter `{name}` that is neither true nor false"), "use `true` or `false`")),
    }
}

fn unknown(name: &str) -> StoreError {
    let error = unknown_parameter(name, &[&DRIVER_PARAMETERS[..], &OUR_PARAMETERS].concat());
    refuse(error.problem(), error.remedy())
}

pub(crate) fn refuse(problem: &str, remedy: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "use the PostgreSQL URL", format!("it {problem}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn addresses_are_those_of_the_url() {
        let table = [
            ("postgres://u:p@h/d", "h:5432/d"),
            ("postgresql://u@h:6432", "h:6432/u"),
            ("postgres:///d?host=h&port=7000&user=u", "h:7000/d"),
            ("postgres://u:a?b@h/d", "h:5432/d"),
            ("postgres://u:a%40b%2Fc@h/d", "h:5432/d"),
            ("postgres://u@a,b:5433/d", "a:5432,b:5433/d"),
            ("postgres://u@[::1]:5433/d", "[::1]:5433/d"),
            ("postgres:///d?host=/var/run/postgresql&user=u", "/var/run/postgresql:5432/d"),
            ("postgres://u@/d?hostaddr=127.0.0.1", "127.0.0.1:5432/d"),
        ];
        for (url, address) in table {
            assert_eq!(target(url).address(), address, "{url}");
        }
    }

    #[test]
    fn a_peer_that_is_gone_is_noticed_unless_the_configuration_says_otherwise() {
        let of = |config: Config| {
            let config = Target::from_config(config, Connector::new(NoTls)).config;
            (
                config.get_keepalives_idle(),
                config.get_keepalives_interval(),
                config.get_keepalives_retries(),
                config.get_tcp_user_timeout().copied(),
            )
        };
        let from_url = target("postgres://u@h/d").config;
        let by_url = (
            from_url.get_keepalives_idle(),
            from_url.get_keepalives_interval(),
            from_url.get_keepalives_retries(),
            from_url.get_tcp_user_timeout().copied(),
        );
        assert_eq!(of(Config::new()), by_url);
        let mut own = Config::new();
        let minute = Duration::from_secs(60);
        own.keepalives_idle(minute).keepalives_interval(minute).keepalives_retries(9).tcp_user_timeout(minute);
        assert_eq!(of(own), (minute, Some(minute), Some(9), Some(minute)));
    }

    #[test]
    fn another_machine_is_reached_with_tls_unless_the_url_says_disable() {
        use SslMode::{Disable, Prefer, Require};
        for (url, mode) in [
            ("postgres://u@h/d", Require),
            ("postgres://u@10.0.0.7/d?sslmode=prefer", Require),
            ("postgres://u@h/d?sslmode=allow", Require),
            ("postgres://u@h/d?sslmode=disable", Disable),
            ("postgres://u@localhost,h/d", Require),
            ("postgres://u@localhost,h/d?host=127.0.0.1", Require),
            ("postgres://u@localhost/d?hostaddr=10.0.0.7", Require),
            ("postgres://u@h/d?hostaddr=127.0.0.1", Prefer),
            ("postgres://u@localhost,127.0.0.1,[::1],db.localhost/d", Prefer),
            ("postgres://u@localhost/d?sslmode=allow", Prefer),
            ("postgres:///d?host=/run&user=u", Disable),
        ] {
            assert_eq!(target(url).config.get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn sslmodes_mean_what_they_mean_in_libpq() {
        use Verify::{Chain, ChainAndName, Nothing};
        let table = [
            ("", SslMode::Prefer, Nothing, Roots::System),
            ("sslmode=disable", SslMode::Disable, Nothing, Roots::System),
            ("sslmode=prefer&sslrootcert=/ca", SslMode::Prefer, Nothing, Roots::File("/ca".into())),
            ("sslmode=require", SslMode::Require, Nothing, Roots::System),
            ("sslmode=require&sslrootcert=%2Fa%20b", SslMode::Require, Chain, Roots::File("/a b".into())),
            ("sslmode=require&sslrootcert=system", SslMode::Require, Chain, Roots::System),
            ("sslmode=verify-ca", SslMode::Require, Chain, Roots::System),
            ("sslmode=verify-full&sslrootcert=system", SslMode::Require, ChainAndName, Roots::System),
            ("sslrootcert=/ca&sslmode=verify-full", SslMode::Require, ChainAndName, Roots::File("/ca".into())),
            ("host=/run&sslmode=verify-full", SslMode::Disable, ChainAndName, Roots::System),
        ];
        for (query, mode, verify, roots) in table {
            let host = if query.starts_with("host=") { "" } else { "localhost" };
            let target = target(&format!("postgres://u@{host}/d?{query}"));
            assert_eq!(target.config.get_ssl_mode(), mode, "{query}");
            assert_eq!(target.tls, Tls { verify, roots, direct: false, identity: None }, "{query}");
        }
    }

    #[test]
    fn to_another_machine_a_root_certificate_is_verified_in_every_mode_with_tls() {
        use Verify::{Chain, Nothing};
        for (url, mode, verify) in [
            ("postgres://u@h/d?sslrootcert=/ca", SslMode::Require, Chain),
            ("postgres://u@h/d?sslrootcert=/ca&sslmode=prefer", SslMode::Require, Chain),
            ("postgres://u@h/d?sslrootcert=/ca&sslmode=allow", SslMode::Require, Chain),
            ("postgres://u@h/d?sslrootcert=/ca&sslmode=disable", SslMode::Disable, Nothing),
            ("postgres://u@localhost/d?sslrootcert=/ca", SslMode::Prefer, Nothing),
        ] {
            let target = target(url);
            assert_eq!(target.config.get_ssl_mode(), mode, "{url}");
            assert_eq!((target.tls.verify, target.tls.roots), (verify, Roots::File("/ca".into())), "{url}");
        }
    }

    #[test]
    fn settings_that_the_url_leaves_open_are_filled_in() {
        let plain = target("postgres://u@h/d").config;
        assert_eq!(plain.get_application_name(), Some("pillarbox"));
        assert_eq!(plain.get_tcp_user_timeout(), Some(&Duration::from_secs(30)));
        assert_eq!(plain.get_keepalives_idle(), Duration::from_secs(30));
        assert_eq!(plain.get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(target("postgres://u@a,b/d").config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let chosen = target(
            "postgres://u@a,b/d?application_name=a@b&tcp_user_timeout=5&keepalives_idle=7&target_session_attrs=any\
             &options=-c%20search_path%3Dx&pgbouncer=true",
        );
        assert!(chosen.pooler);
        let chosen = chosen.config;
        assert_eq!(chosen.get_application_name(), Some("a@b"));
        assert_eq!(chosen.get_tcp_user_timeout(), Some(&Duration::from_secs(5)));
        assert_eq!(chosen.get_keepalives_idle(), Duration::from_secs(7));
        assert_eq!(chosen.get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(chosen.get_options(), Some("-c search_path=x"));
        assert_eq!(chosen.get_user(), Some("u"));
    }

    #[test]
    fn errors_name_the_parameter_and_the_remedy() {
        let table = [
            ("http://h", "postgres://"),
            ("postgres://", "names no host"),
            ("postgres://u@h/d?sslmod=require", "`sslmod`"),
            ("postgres://u:pa@hunter2@h/d", "%40"),
            ("postgres://u:pa@hunter2/x@h/d", "%40"),
            ("postgres://u@h/d?sslmode=off", "verify-full"),
            ("postgres://u@h/d?pgbouncer=yes", "`pgbouncer`"),
            ("postgres://u@h/d?connect_timeout=soon", "connect_timeout"),
            ("postgres://u@h/d?connect_timeout=0", "`connect_timeout` that is no time to wait"),
            ("postgres://u@h/d?connect_timeout=-1", "`connect_timeout` that is no time to wait"),
            ("postgres://u@h/d?sslmode", "name=value"),
            ("postgres://u@h/d?sslrootcert=%ff", "`sslrootcert`"),
            ("postgres://u@h/d?sslcert=/c", "name both"),
            ("postgres://u@h/d?sslkey=/k", "name both"),
            ("postgres://u@h/d?sslmode=disable&sslcert=/c&sslkey=/k", "without TLS; write `sslmode=require`"),
        ];
        for (url, part) in table {
            let error = Target::parse(url).map(|_| ()).expect_err(url).to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{url}: {error}");
        }
    }
}
