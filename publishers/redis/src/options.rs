use pillarbox_connect::{Address, Form, Scheme, max_body, timeout};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

const URL: Form = Form {
    schemes: &[
        Scheme::plain("redis", 6379),
        Scheme::tls("rediss", 6379),
        Scheme::plain("valkey", 6379),
        Scheme::tls("valkeys", 6379),
    ],
    several: false,
    path: true,
    remedy: "write it as `rediss://HOST:PORT/DATABASE`",
};

pillarbox_connect::server_options! {
    /// The address of Redis, and the options of writing streams.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pillarbox_redis::RedisOptions;
    ///
    /// let mut options = RedisOptions::new("rediss://redis.example.com/2");
    /// options.max_length = Some(1_000_000);
    /// options.timeout = Duration::from_secs(5);
    /// ```
    pub struct RedisOptions {
        /// `redis://HOST[:PORT][/DATABASE]`, or `rediss://…` with TLS; `valkey://` and `valkeys://` are the same. The port is 6379
        /// and the database 0 unless it says otherwise. It may hold `USER:PASSWORD@`; a password without a user is that of Redis's
        /// `default`.
        pub url: Secret,
        /// About how many entries a stream keeps; the oldest are removed beyond that (`MAXLEN ~`), read or not. Default: all are
        /// kept.
        #[serde(default)]
        pub max_length: Option<u64> = None,
        /// Lets the first entry create its stream. Without it an entry for a missing stream is refused. Default: yes.
        #[serde(default = "yes")]
        pub create_streams: bool = yes(),
        /// The largest body that is sent, in bytes. It must not exceed the server's `proto-max-bulk-len`, beyond which Redis cuts
        /// the connection. Default: 536,870,912, as Redis's.
        #[serde(default = "half_a_gibibyte")]
        pub max_body: usize = half_a_gibibyte(),
    }
}

impl RedisOptions {
    /// Validates all options and returns the address of the server, the login, and the database.
    pub(crate) fn validate(&self) -> Result<(Address, i64), ConfigError> {
        let address = self.address(URL, &timeout::RANGE)?;
        // At most what the client takes as a number of a database.
        let database = address.path.as_deref().map_or(Ok(0), str::parse::<u32>);
        let database = database.map_err(|_| address.refuse("has a path that is no number of a database"))?;
        if self.max_length == Some(0) {
            let remedy = "set at least 1, or remove it to keep all entries";
            return Err(ConfigError::new("max_length", "is 0, which would keep nothing", remedy));
        }
        max_body::check(self.max_body)?;
        Ok((address, i64::from(database)))
    }
}

fn half_a_gibibyte() -> usize {
    512 * 1024 * 1024
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisPublisher;

    #[test]
    fn invalid_settings_are_refused_with_their_field_and_no_secret() {
        type Change = fn(&mut RedisOptions);
        let refused: [(&str, &str, Change); 5] = [
            ("url", "plaintext = true", |o| o.url = "valkey://user:hunter2@far.example".into()),
            ("url", "no number of a database", |o| o.url = "redis://localhost/orders".into()),
            ("url", "no number of a database", |o| o.url = "redis://localhost/-1".into()),
            ("max_length", "is 0", |o| o.max_length = Some(0)),
            ("max_body", "is 0", |o| o.max_body = 0),
        ];
        for (field, problem, change) in refused {
            let mut options = RedisOptions::new("redis://localhost");
            assert!(options.validate().is_ok());
            change(&mut options);
            let error = options.validate().map(|_| ()).expect_err(problem);
            let text = error.to_string();
            assert_eq!(error.field(), field, "{text}");
            assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
        }
    }

    #[test]
    fn a_url_names_a_database_and_perhaps_a_password_alone() {
        for (url, shown) in [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("valkeys://u:p%40ss@far.example:7000/12", "valkeys://far.example:7000/12"),
            ("redis://:p%40ss@[::1]:7000/", "redis://[::1]:7000/0"),
        ] {
            let publisher = RedisPublisher::new(RedisOptions::new(url)).expect(url);
            assert_eq!(publisher.info.address, shown);
        }
        let (address, _) = RedisOptions::new("redis://:p%40ss@localhost").validate().expect("a URL");
        assert_eq!((address.login.username, address.login.password), (None, Some("p@ss".into())));
    }

    #[test]
    fn a_configuration_names_what_differs_from_the_defaults() {
        let read = |json: &str| serde_json::from_str::<RedisOptions>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"url":"redis://localhost"}"#), Ok(RedisOptions::new("redis://localhost")));
        let mut all = RedisOptions::new("redis://localhost");
        (all.max_length, all.create_streams, all.max_body) = (Some(9), false, 8);
        let written = r#"{"url":"redis://localhost","max_length":9,"create_streams":false,"max_body":8}"#;
        assert_eq!(read(written), Ok(all));
        assert!(read(r#"{"url":"redis://localhost","maxlength":1}"#).is_err_and(|e| e.contains("maxlength")));
    }
}
