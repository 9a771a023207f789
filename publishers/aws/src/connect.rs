//! The parts that both services' clients are made of.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use aws_types::service_config::ServiceConfigKey;
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

/// The loader of the environment and the profile.
pub(crate) fn loader(options: &AwsOptions, http: SharedHttpClient) -> ConfigLoader {
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
    loader
}

/// The endpoint that the client of this service sends to, if it is not the region's: that of the options, else that of the environment or
/// the profile for this service, else that for all. The client looks for it in the same places.
pub(crate) fn endpoint(config: &SdkConfig, service: &str) -> Option<String> {
    let of_all = || config.endpoint_url().map(str::to_owned);
    if config.get_origin("endpoint_url").is_client_config() {
        return of_all();
    }
    let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url");
    // A key that has all three is never refused.
    let of_service = key.build().ok().and_then(|key| config.service_config()?.load_config(key));
    of_service.or_else(of_all)
}
