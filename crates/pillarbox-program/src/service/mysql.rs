use mysql_async::{Opts, OptsBuilder, PoolConstraints, PoolOpts, SslOpts};
use pillarbox_connect::needs_tls;
use url::Url;

use super::root_certificates;
use crate::failure::Failure;

/// The options to connect to the database that the outbox's URL names, with a pool of `connections`.
///
/// If the URL asks for TLS, the server's certificate is verified in full, even if `ssl-mode` asks for less.
pub fn mysql_options(url: &str, connections: usize) -> Result<Opts, Failure> {
    let Service { url, socket, tls, roots } = Service::parse(url)?;
    let options = Opts::from_url(url.as_str()).map_err(Failure::during("read the URL of the database"))?;
    let tls = if tls { Some(tls_options(roots.as_deref())?) } else { None };
    // None of them is closed when it is returned: the next transaction needs it again.
    let constraints = PoolConstraints::new(connections, connections).unwrap_or_default();
    Ok(OptsBuilder::from_opts(options)
        .socket(socket)
        .prefer_socket(false)
        .ssl_opts(tls)
        .pool_opts(PoolOpts::default().with_constraints(constraints))
        .into())
}

fn tls_options(roots: Option<&str>) -> Result<SslOpts, Failure> {
    let roots = root_certificates(roots)?.into_iter().map(|certificate| certificate.to_vec().into()).collect();
    Ok(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots))
}

/// A URL for the driver, and the settings that the outbox expresses differently.
#[derive(Debug)]
struct Service {
    url: Url,
    socket: Option<String>,
    tls: bool,
    roots: Option<String>,
}

impl Service {
    /// Takes out the parameters, all of which are the outbox's; it has refused unknown ones.
    fn parse(url: &str) -> Result<Self, Failure> {
        const DOING: &str = "read the URL of the database";
        let url = url.replacen("mariadb://", "mysql://", 1);
        let mut url = Url::parse(&url).map_err(Failure::during(DOING))?;
        let parameter = |name: &str| {
            url.query_pairs().find(|(parameter, _)| parameter == name).map(|(_, value)| value.into_owned())
        };
        let (socket, roots) = (parameter("socket"), parameter("ssl-ca"));
        let tls = match parameter("ssl-mode").map(|mode| mode.to_ascii_lowercase()).as_deref() {
            Some("disabled") => false,
            Some("required" | "verify_identity") => true,
            _ => socket.is_none() && needs_tls(url.host_str()),
        };
        url.set_query(None);
        Ok(Self { url, socket, tls, roots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_parameters_that_only_the_outbox_understands_are_removed() {
        let url = "mariadb://me:what%3F@host/db?ssl-mode=VERIFY_IDENTITY&ssl-ca=%2Fca.pem&connect_timeout=3&socket=/s";
        let Service { url, socket, tls, roots } = Service::parse(url).unwrap();
        assert_eq!(url.as_str(), "mysql://me:what%3F@host/db");
        assert_eq!((socket.as_deref(), tls, roots.as_deref()), (Some("/s"), true, Some("/ca.pem")));
        assert_eq!(Opts::from_url(url.as_str()).unwrap().pass(), Some("what?"));
        for (url, tls) in [
            ("mysql://me@localhost/db", false),
            ("mysql://me@host/db?socket=/s", false),
            ("mysql://me@host/db?ssl-mode=disabled", false),
            ("mysql://me@host/db", true),
            ("mysql://me@host/db?ssl-mode=PREFERRED", true),
            ("mysql://me@[::1]/db", false),
        ] {
            assert_eq!(Service::parse(url).unwrap().tls, tls, "{url}");
        }
    }
}
