//! The parts that both services' clients are made of.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

use crate::options::AwsOptions;

/// The HTTP client, with TLS by rustls and ring: the one that the services' clients bring along would use another library.
pub(crate) fn http(options: &AwsOptions) -> Result<SharedHttpClient, ConfigError> {
    let mut trusted = TrustStore::default();
    if let Some(file) = &options.ca_file {
        trusted = TrustStore::empty().with_pem_certificate(pillarbox_connect::tls::pem("ca_file", file)?);
    }
    let context = TlsContext::builder()
        .with_trust_store(trusted)
        .build()
        .map_err(|error| ConfigError::new("ca_file", format!("cannot be used: {error}"), "name a PEM file"))?;
    Ok(Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .tls_context(context)
        .pool_max_idle_per_host(options.concurrency)
        .pool_idle_timeout(Duration::from_secs(20))
        .build_https())
}

/// Reads what the environment and the profile say.
pub(crate) async fn config(options: &AwsOptions, http: SharedHttpClient) -> SdkConfig {
    let limits = TimeoutConfig::builder().connect_timeout(options.timeout).operation_timeout(options.timeout).build();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .timeout_config(limits)
        // The caller sends again what was not confirmed, and knows what must stay in order.
        .retry_config(RetryConfig::disabled());
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(url) = &options.endpoint_url {
        loader = loader.endpoint_url(url.expose());
    }
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let (Some(id), Some(secret)) = (&options.access_key_id, &options.secret_access_key) {
        let token = options.session_token.as_ref().map(|token| token.expose().to_owned());
        let given = Credentials::new(id, Secret::expose(secret), token, None, "options");
        loader = loader.credentials_provider(given);
    }
    loader.load().await
}
