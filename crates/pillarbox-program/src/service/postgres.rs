use std::net::IpAddr;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use pillarbox_connect::needs_tls;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::root_certificates;
use crate::failure::Failure;

/// A pool of `connections` to the database that the outbox's URL names.
///
/// If the URL asks for TLS, the server's certificate is verified in full, even if `sslmode` asks for less.
pub fn postgres_pool(url: &str, connections: usize) -> Result<Pool, Failure> {
    let Service { config, roots } = Service::parse(url)?;
    // A returned connection is not checked: a dead one fails its next user, with an error.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = if config.get_ssl_mode() == SslMode::Require {
        Manager::from_config(config, tls(roots.as_deref())?, recycling)
    } else {
        Manager::from_config(config, NoTls, recycling)
    };
    Pool::builder(manager).max_size(connections).build().map_err(Failure::during("set up the service's connections"))
}

/// The settings for the driver in a URL, and its file of root certificates.
#[derive(Debug)]
struct Service {
    config: Config,
    roots: Option<String>,
}

impl Service {
    /// Takes out the parameters that the outbox understands and the driver does not.
    fn parse(url: &str) -> Result<Self, Failure> {
        // A password may contain a question mark, so parameters are looked for behind it.
        let hosts = url.find('@').map_or(0, |at| at + 1);
        let (base, query) = match url[hosts..].find('?') {
            Some(question) => (&url[..hosts + question], &url[hosts + question + 1..]),
            None => (url, ""),
        };
        let (mut mode, mut roots, mut kept) = (SslMode::Prefer, None, Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').unwrap_or((parameter, "")) {
                ("sslmode", "disable") => mode = SslMode::Disable,
                ("sslmode", "allow" | "prefer") => mode = SslMode::Prefer,
                ("sslmode", _) => mode = SslMode::Require,
                ("sslrootcert", "system") => roots = None,
                ("sslrootcert", path) => roots = Some(path.to_owned()),
                ("pgbouncer", "true" | "1") => {
                    return Err(Failure::Service(
                        "leads to a pooler, and the service that this command plays prepares its statements; \
                         name the server itself",
                    ));
                }
                ("pgbouncer", _) => {}
                _ => kept.push(parameter),
            }
        }
        let mut config: Config =
            format!("{base}?{}", kept.join("&")).parse().map_err(Failure::during("read the URL of the database"))?;
        if mode == SslMode::Prefer && leads_elsewhere(&config) {
            mode = SslMode::Require;
        }
        config.ssl_mode(mode);
        Ok(Self { config, roots })
    }
}

/// True if the service would send its password to another machine.
fn leads_elsewhere(config: &Config) -> bool {
    let addresses: Vec<String> = config.get_hostaddrs().iter().map(IpAddr::to_string).collect();
    let hosts = config.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(name) => Some(name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    });
    if addresses.is_empty() { needs_tls(hosts) } else { needs_tls(addresses.iter().map(String::as_str)) }
}

fn tls(roots_file: Option<&str>) -> Result<MakeRustlsConnect, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(root_certificates(roots_file)?);
    Ok(MakeRustlsConnect::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_parameters_that_only_the_outbox_understands_are_removed() {
        let url = "postgres://me:what?@host/db?sslmode=verify-full&application_name=shop&sslrootcert=/ca.pem";
        let Service { config, roots } = Service::parse(url).unwrap();
        assert_eq!((config.get_password(), config.get_dbname()), (Some(&b"what?"[..]), Some("db")));
        assert_eq!((config.get_ssl_mode(), roots.as_deref()), (SslMode::Require, Some("/ca.pem")));
        assert_eq!(config.get_application_name(), Some("shop"));
        for (url, mode) in [
            ("postgres://me@localhost/db", SslMode::Prefer),
            ("postgres:///db?host=/run&user=me", SslMode::Prefer),
            ("postgres://me@host", SslMode::Require),
            ("postgres://me@host/db?sslmode=prefer", SslMode::Require),
            ("postgres://me@host/db?hostaddr=127.0.0.1", SslMode::Prefer),
            ("postgres://me@host/db?sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(Service::parse(url).unwrap().config.get_ssl_mode(), mode, "{url}");
        }
        assert!(Service::parse("postgres://me@host/db?pgbouncer=true").is_err());
    }
}
