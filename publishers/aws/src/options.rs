use std::path::PathBuf;
use std::time::Duration;

use pillarbox_connect::{refuse_plaintext, timeout};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use serde::Deserialize;
use url::Url;

/// The least size that a service has for its largest message.
const LEAST_MESSAGE: usize = 1024;

/// Options of an [`SnsPublisher`](crate::SnsPublisher) or an [`SqsPublisher`](crate::SqsPublisher).
///
/// `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AwsOptions {
    /// The region, such as `eu-central-1`. Default: what the environment or the profile says.
    pub region: Option<String>,
    /// The address of the service, if it is not Amazon's own: `https://host`. Default: what `AWS_ENDPOINT_URL_SQS` or `AWS_ENDPOINT_URL_SNS`,
    /// `AWS_ENDPOINT_URL` or the profile says, for which the same rules hold; else the region's. `AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true`
    /// turns these off.
    pub endpoint_url: Option<Secret>,
    /// The access key's id. Default: credentials from the environment, the profile, a web identity, the container or the machine.
    pub access_key_id: Option<String>,
    /// The secret access key. Goes with `access_key_id`.
    pub secret_access_key: Option<Secret>,
    /// The session's token, for credentials that end. Default: none.
    pub session_token: Option<Secret>,
    /// The profile in the shared configuration. Default: `AWS_PROFILE`, else `default`.
    pub profile: Option<String>,
    /// The number of batches of one call that are under way at once, 1 to 256. Default: 8.
    pub concurrency: usize,
    /// The bytes of a message with its attributes, and those of a batch, at least 1024. Default: 262144 for SNS, and 1048576 for SQS. A topic
    /// takes more than its default once its attribute `MaximumMessageSize` says so.
    pub max_message: Option<usize>,
    /// The limit of one call, connecting and looking for credentials included. Default: 10 s.
    #[serde(deserialize_with = "timeout::read")]
    pub timeout: Duration,
    /// Allows an endpoint of `http://` to lead to another machine. Default: no.
    pub plaintext: bool,
    /// PEM file of the authorities to trust. Default: those of the operating system.
    pub ca_file: Option<PathBuf>,
}

impl Default for AwsOptions {
    fn default() -> Self {
        Self {
            region: None,
            endpoint_url: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            profile: None,
            concurrency: 8,
            max_message: None,
            timeout: timeout::default(),
            plaintext: false,
            ca_file: None,
        }
    }
}

impl AwsOptions {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=256).contains(&self.concurrency) {
            return Err(ConfigError::new("concurrency", format!("is {}", self.concurrency), "set 1 to 256"));
        }
        if let Some(bytes) = self.max_message.filter(|bytes| *bytes < LEAST_MESSAGE) {
            return Err(ConfigError::new("max_message", format!("is {bytes}"), "set 1024 or more, or remove it"));
        }
        timeout::check(self.timeout, &timeout::RANGE)?;
        let pairs = [
            ("access_key_id", self.access_key_id.is_some(), self.secret_access_key.is_some(), "secret_access_key"),
            ("secret_access_key", self.secret_access_key.is_some(), self.access_key_id.is_some(), "access_key_id"),
            ("session_token", self.session_token.is_some(), self.access_key_id.is_some(), "access_key_id"),
        ];
        for (field, set, other, name) in pairs {
            if set && !other {
                return Err(ConfigError::new(field, format!("has no `{name}` to go with"), "set both, or neither"));
            }
        }
        self.endpoint_url.as_ref().map_or(Ok(()), |url| self.check_endpoint(url.expose()))
    }

    /// Checks the endpoint, be it from the options, the environment or the profile.
    pub(crate) fn check_endpoint(&self, url: &str) -> Result<(), ConfigError> {
        let refuse = |problem: &'static str, remedy| Err(ConfigError::new("endpoint_url", problem, remedy));
        let Ok(url) = Url::parse(url) else { return refuse("is no URL", "write https://host") };
        let Some(host) = url.host_str() else { return refuse("names no host", "write https://host") };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("holds credentials", "set `access_key_id` and `secret_access_key`");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("has a query or a fragment", "write https://host");
        }
        match url.scheme() {
            "https" => Ok(()),
            "http" => refuse_plaintext("endpoint_url", "https", host, self.plaintext),
            _ => refuse("has a scheme that is not HTTP", "write https://host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused_with_a_remedy_and_without_secrets() {
        let error = |json: &str| {
            let options: AwsOptions = serde_json::from_str(json).expect("reads");
            assert!(!format!("{options:?}").contains("hunter2"));
            options.check().expect_err("refused").to_string()
        };
        for (json, problem) in [
            (r#"{"concurrency":0}"#, "`concurrency` is 0"),
            (r#"{"max_message":1023}"#, "`max_message` is 1023"),
            (r#"{"timeout":"0s"}"#, "`timeout` is 0s"),
            (r#"{"access_key_id":"A"}"#, "`access_key_id` has no `secret_access_key`"),
            (r#"{"secret_access_key":"hunter2"}"#, "`secret_access_key` has no `access_key_id`"),
            (r#"{"session_token":"hunter2"}"#, "`session_token` has no `access_key_id`"),
            (r#"{"endpoint_url":"localhost"}"#, "`endpoint_url` is no URL"),
            (r#"{"endpoint_url":"http://sqs.example"}"#, "or set `plaintext = true`"),
            (r#"{"endpoint_url":"https://u:hunter2@sqs.example"}"#, "holds credentials"),
            (r#"{"endpoint_url":"https://sqs.example/?key=hunter2"}"#, "has a query"),
            (r#"{"endpoint_url":"ftp://sqs.example"}"#, "not HTTP"),
        ] {
            assert!(error(json).contains(problem) && !error(json).contains("hunter2"), "{}", error(json));
        }
        for json in
            [r#"{"endpoint_url":"http://localhost:4566"}"#, r#"{"endpoint_url":"http://h","plaintext":true}"#, "{}"]
        {
            assert_eq!(serde_json::from_str::<AwsOptions>(json).expect("reads").check(), Ok(()));
        }
    }
}
