use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pillarbox_connect::timeout;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use serde::Deserialize;

/// The most requests under way for one call.
const CONCURRENCY_LIMIT: usize = 1024;

/// Options of a [`WebhookPublisher`](crate::WebhookPublisher).
///
/// `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The URL that targets are paths below: `https://user:password@host/path?query`. User and password are sent as basic
    /// authorization, the query with each request; neither is shown. Default: none, so that each target is an absolute URL.
    pub url: Option<Secret>,
    /// The user's name, for basic authorization at `url`. Default: none.
    pub username: Option<String>,
    /// The user's password, for basic authorization at `url`. Default: none.
    pub password: Option<Secret>,
    /// A token, for bearer authorization at `url`. Default: none.
    pub token: Option<Secret>,
    /// The secrets that sign: `whsec_`, followed by 24 to 64 bytes in Base64. Each gives a signature, so that a receiver may know the
    /// old one or the new one while they are replaced. Default: none, so that nothing is signed.
    pub secrets: Vec<Secret>,
    /// The secrets that sign the events of each tenant, in the place of `secrets`: where one secret signs for all, each receiver that
    /// knows it can forge events to the others. An event of a tenant that is not named here waits. Default: none.
    pub secrets_by_tenant: Option<BTreeMap<String, Vec<Secret>>>,
    /// The number of requests of one call that are under way at once, 1 to 1024. Default: 16.
    pub concurrency: usize,
    /// The limit of one call. A connection may take half of it, 5 s at most. Default: 10 s.
    #[serde(deserialize_with = "timeout::read")]
    pub timeout: Duration,
    /// Allows `http://` to lead to another machine. Default: no.
    pub plaintext: bool,
    /// Allows connections to private, loopback, link-local and other special addresses. Default: no.
    pub allow_private: bool,
    /// PEM file of the authorities to trust. Default: those of the operating system.
    pub ca_file: Option<PathBuf>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            url: None,
            username: None,
            password: None,
            token: None,
            secrets: Vec::new(),
            secrets_by_tenant: None,
            concurrency: 16,
            timeout: timeout::default(),
            plaintext: false,
            allow_private: false,
            ca_file: None,
        }
    }
}

impl WebhookOptions {
    /// The defaults, with targets below `url`.
    pub fn new(url: impl Into<Secret>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// Checks what concerns no other part: numbers, and which options go together.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.concurrency == 0 || self.concurrency > CONCURRENCY_LIMIT {
            return Err(ConfigError::new(
                "concurrency",
                format!("is {}", self.concurrency),
                format!("set 1 to {CONCURRENCY_LIMIT}"),
            ));
        }
        timeout::check(self.timeout, &timeout::RANGE)?;
        let alone = "leave it out, or set `url`: credentials are sent to one place only";
        let named = [("username", self.username.is_some()), ("token", self.token.is_some())];
        if let (None, Some((field, _))) = (&self.url, named.into_iter().find(|(_, set)| *set)) {
            return Err(ConfigError::new(field, "has no `url` to go with", alone));
        }
        let is_plain = |url: &Secret| url.expose().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:"));
        if self.ca_file.is_some() && self.url.as_ref().is_some_and(is_plain) {
            let remedy = "write `https://` in `url`, or remove `ca_file`";
            return Err(ConfigError::new("ca_file", "is set, and the connection is without TLS", remedy));
        }
        self.check_tenants()?;
        match (&self.username, &self.password, &self.token) {
            (None, Some(_), _) => Err(ConfigError::new("password", "has no `username` to go with", "set both")),
            (Some(_), _, Some(_)) => {
                Err(ConfigError::new("token", "contradicts `username`", "leave one of them out: a request has one"))
            }
            _ => Ok(()),
        }
    }

    fn check_tenants(&self) -> Result<(), ConfigError> {
        let Some(by_tenant) = &self.secrets_by_tenant else { return Ok(()) };
        let refuse = |problem: String, remedy| Err(ConfigError::new("secrets_by_tenant", problem, remedy));
        if !self.secrets.is_empty() {
            return refuse(
                "contradicts `secrets`".to_owned(),
                "leave one of them out: an event is signed for its tenant, or for all",
            );
        }
        if by_tenant.is_empty() {
            return refuse("is empty".to_owned(), "leave it out, or name each tenant and its secrets");
        }
        match by_tenant.iter().find(|(tenant, secrets)| tenant.is_empty() || secrets.is_empty()) {
            Some((tenant, _)) => {
                let problem = format!("names tenant `{}` and no secret", tenant.escape_debug());
                refuse(problem, "write `TENANT = [\"whsec_…\"]`, or take it out")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut WebhookOptions)) -> String {
        let mut options = WebhookOptions::new("https://example.com");
        change(&mut options);
        options.check().expect_err("refused").to_string()
    }

    #[test]
    fn invalid_settings_are_refused_with_a_remedy() {
        assert!(refused(|o| o.concurrency = 0).contains("`concurrency` is 0; set 1 to 1024"));
        assert!(refused(|o| o.concurrency = 1025).contains("is 1025"));
        assert!(refused(|o| o.timeout = Duration::ZERO).contains("`timeout` is 0s"));
        assert!(refused(|o| o.password = Some("hunter2".into())).contains("`password` has no `username`"));
        let both = |o: &mut WebhookOptions| (o.username, o.token) = (Some("u".into()), Some("hunter2".into()));
        assert!(refused(both).contains("`token` contradicts `username`"));
        let with = |tenants: &[(&str, &[&str])]| -> Option<BTreeMap<String, Vec<Secret>>> {
            let secrets = |secrets: &[&str]| secrets.iter().map(|secret| Secret::from(*secret)).collect();
            Some(tenants.iter().map(|(tenant, of)| ((*tenant).to_owned(), secrets(of))).collect())
        };
        assert!(refused(|o| o.secrets_by_tenant = with(&[])).contains("`secrets_by_tenant` is empty"));
        assert!(
            refused(|o| o.secrets_by_tenant = with(&[("acme", &[])])).contains("names tenant `acme` and no secret")
        );
        let both = |o: &mut WebhookOptions| {
            (o.secrets, o.secrets_by_tenant) = (vec!["hunter2".into()], with(&[("acme", &["hunter2"])]));
        };
        assert!(refused(both).contains("`secrets_by_tenant` contradicts `secrets`"));
        let plain = |o: &mut WebhookOptions| {
            (o.url, o.ca_file) = (Some("HTTP://127.0.0.1/".into()), Some("/ca.pem".into()));
        };
        assert!(refused(plain).contains("`ca_file` is set, and the connection is without TLS"));
        let no_url = |o: &mut WebhookOptions| (o.url, o.token) = (None, Some("hunter2".into()));
        assert!(refused(no_url).contains("`token` has no `url`"));
    }

    #[test]
    fn it_is_read_from_a_configuration_and_shows_no_secret() {
        let json = r#"{"url":"https://u:hunter2@h/","token":"hunter2","secrets":["whsec_hunter2"],"timeout":"200ms"}"#;
        let options: WebhookOptions = serde_json::from_str(json).expect("reads");
        assert_eq!((options.timeout, options.concurrency), (Duration::from_millis(200), 16));
        assert!(!format!("{options:?}").contains("hunter2"));
        let error = |json| serde_json::from_str::<WebhookOptions>(json).expect_err("refused").to_string();
        assert!(error(r#"{"timeout":"soon"}"#).contains("\"soon\" is no duration"));
        assert!(error(r#"{"time_out":"1s"}"#).contains("unknown field `time_out`"));
    }
}
