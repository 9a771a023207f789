use std::path::PathBuf;

use pillarbox_connect::timeout;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

pillarbox_connect::server_options! {
    /// The addresses of the servers, and the options of their connections.
    ///
    /// In a configuration file:
    ///
    /// ```
    /// # fn main() -> Result<(), toml::de::Error> {
    /// let options: pillarbox_nats::NatsOptions = toml::from_str(
    ///     r#"
    ///     url = "tls://nats-1.internal:4222,tls://nats-2.internal:4222"
    ///     token = { file = "/proc/sys/kernel/ostype" }
    ///     timeout = "5s"
    ///     "#,
    /// )?;
    /// assert_eq!(options.timeout, std::time::Duration::from_secs(5));
    /// # Ok(()) }
    /// ```
    pub struct NatsOptions {
        /// The servers, separated by commas: `nats://HOST:PORT`, or `tls://HOST:PORT` with TLS. The port is 4222 unless it is
        /// named. May hold a user and a password, `nats://USER:PASSWORD@HOST`, or a token, `nats://TOKEN@HOST`, the same for all.
        pub url: Secret,
        /// The token to authenticate with. Default: none.
        #[serde(default)]
        pub token: Option<Secret> = None,
        /// A file of credentials (JWT and NKey), as `nsc` writes it. Read at every connection. Default: none.
        #[serde(default)]
        pub credentials_file: Option<PathBuf> = None,
        /// The seed of an NKey to authenticate with, without a JWT. Default: none.
        #[serde(default)]
        pub nkey: Option<Secret> = None,
        /// The stream that has to take every message; another one refuses it. Default: whichever stream takes the subject.
        #[serde(default)]
        pub expected_stream: Option<String> = None,
        /// The prefix of the subjects that confirmations come back on, for servers that permit no other. Default: `_INBOX`.
        #[serde(default)]
        pub inbox_prefix: Option<String> = None,
    }
}

impl NatsOptions {
    /// Checks the options, but for the servers and the credentials.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        timeout::check(self.timeout, &timeout::RANGE)?;
        if let Some(stream) = &self.expected_stream
            && (stream.is_empty() || !stream.chars().all(|c| c.is_ascii_graphic() && !"*>./\\".contains(c)))
        {
            let problem = format!("is `{}`, which no stream can be called", stream.escape_debug());
            return Err(ConfigError::new("expected_stream", problem, "name a stream, or leave it out"));
        }
        if let Some(prefix) = &self.inbox_prefix
            && crate::message::complaint(prefix).is_some()
        {
            let problem = format!("is `{}`, which is no subject", prefix.escape_debug());
            return Err(ConfigError::new("inbox_prefix", problem, "name a prefix such as `_INBOX_relay`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_with_its_defaults_and_without_what_is_unknown() {
        let read = |text: &str| toml::from_str::<NatsOptions>(text).map_err(|error| error.to_string());
        assert_eq!(read("url = \"nats://localhost\""), Ok(NatsOptions::new("nats://localhost")));
        assert!(read("url = \"x\"\ntimout = \"1s\"").is_err_and(|error| error.contains("timout")));
    }

    #[test]
    fn invalid_settings_are_named() {
        let refused = |change: fn(&mut NatsOptions)| {
            let mut options = NatsOptions::new("nats://localhost");
            change(&mut options);
            options.check().err().map(|error| error.field())
        };
        assert_eq!(refused(|_| {}), None);
        assert_eq!(refused(|options| options.timeout = std::time::Duration::ZERO), Some("timeout"));
        assert_eq!(refused(|options| options.expected_stream = Some("a.b".to_owned())), Some("expected_stream"));
        assert_eq!(refused(|options| options.inbox_prefix = Some("_INBOX.*".to_owned())), Some("inbox_prefix"));
    }
}
