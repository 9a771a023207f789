//! The client: TLS, and looking up names.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox_connect::tls;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderValue;
use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore};

use crate::address::is_public;
use crate::options::WebhookOptions;
use crate::target::Targets;

/// The time for which an idle connection is kept: less than common servers and balancers keep it (60 s and more), since a request
/// that meets their closing it fails.
const IDLE: Duration = Duration::from_secs(30);

/// The longest time for making a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A client, and one that makes a connection for each request.
pub(crate) fn clients(options: &WebhookOptions) -> Result<(Client, Client), ConfigError> {
    let tls = tls(options)?;
    Ok((client(options, tls.clone(), options.concurrency)?, client(options, tls, 0)?))
}

fn client(options: &WebhookOptions, tls: ClientConfig, max_idle: usize) -> Result<Client, ConfigError> {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(PublicNames { allow_private: options.allow_private })
        .redirect(redirect::Policy::none())
        // A proxy would look names up, and connect, where nothing checks the address.
        .no_proxy()
        .referer(false)
        .user_agent(concat!("pillarbox/", env!("CARGO_PKG_VERSION")))
        // Before the call ends, so that a host which drops packets is told from an endpoint that is slow.
        .connect_timeout(CONNECT.min(options.timeout / 2))
        .pool_max_idle_per_host(max_idle)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| ConfigError::new("url", format!("gives no HTTP client: {error}"), "report this"))
}

fn tls(options: &WebhookOptions) -> Result<ClientConfig, ConfigError> {
    match &options.ca_file {
        // What goes without TLS needs no authorities; what does not is refused when it is sent.
        None if options.plaintext => {
            tls::trusting(tls::roots("ca_file", None).unwrap_or_else(|_| RootCertStore::empty()))
        }
        file => tls::client_config(file.as_deref()),
    }
}

/// The value of the header `authorization`, if there is one.
pub(crate) fn authorization(options: &WebhookOptions, targets: &Targets) -> Result<Option<HeaderValue>, ConfigError> {
    let basic = |user: &str, password: Option<&str>| {
        format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.unwrap_or_default())))
    };
    let value = if let Some(token) = &options.token {
        format!("Bearer {}", token.expose())
    } else if let Some(user) = &options.username {
        basic(user, options.password.as_ref().map(|password| password.expose()))
    } else if let Some((user, password)) = targets.credentials() {
        basic(user, password)
    } else {
        return Ok(None);
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        ConfigError::new("token", "has characters that HTTP cannot carry", "write visible ASCII characters only")
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The credentials in the header `authorization` as an endpoint sees them, which for a user and a password is their Base64.
pub(crate) fn credentials(authorization: &HeaderValue) -> Option<Secret> {
    let (_, credentials) = authorization.to_str().ok()?.split_once(' ')?;
    Some(credentials.into())
}

/// Looks names up, and leaves only addresses that may be connected to. The connection is made to one of those, without a second
/// lookup that could answer otherwise.
#[derive(Debug, Clone, Copy)]
struct PublicNames {
    allow_private: bool,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            admitted(name.as_str(), found, allow_private)
                .map(|found| Box::new(found.into_iter()) as Addrs)
                .map_err(Into::into)
        })
    }
}

fn admitted(name: &str, found: Vec<SocketAddr>, allow_private: bool) -> Result<Vec<SocketAddr>, PrivateName> {
    let refused = found.first().copied();
    let admitted: Vec<_> = found.into_iter().filter(|address| allow_private || is_public(address.ip())).collect();
    match refused {
        Some(address) if admitted.is_empty() => Err(PrivateName { name: name.to_owned(), address: address.ip() }),
        _ => Ok(admitted),
    }
}

/// A name leads to no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{name} leads to {address}, which is no public address; set `allow_private = true` if it is meant")]
pub(crate) struct PrivateName {
    name: String,
    address: IpAddr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_public_addresses_only() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 0)).collect()
        };
        let mixed = addresses(&["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"]);
        let left = admitted("h", mixed.clone(), false).expect("some are left");
        assert_eq!(left, addresses(&["8.8.8.8", "2606:4700::1111"]));
        assert_eq!(admitted("h", mixed.clone(), true).expect("all are left"), mixed);
        let error =
            admitted("h.example", addresses(&["169.254.169.254", "::1"]), false).expect_err("refused").to_string();
        assert!(error.contains("h.example leads to 169.254.169.254") && error.contains("`allow_private = true`"));
        assert!(admitted("h", Vec::new(), false).is_ok_and(|left| left.is_empty()));
    }
}
