//! The clients.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox_connect::tls;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use reqwest::header::HeaderValue;
use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore};

use crate::names::PublicNames;
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
    let names = PublicNames::new(options.allow_private);
    Ok((client(options, tls.clone(), names.clone(), options.concurrency)?, client(options, tls, names, 0)?))
}

fn client(
    options: &WebhookOptions,
    tls: ClientConfig,
    names: PublicNames,
    max_idle: usize,
) -> Result<Client, ConfigError> {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(names)
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
        // A request without TLS needs no authorities; one with TLS is refused when it is sent.
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
