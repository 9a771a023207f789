use pillarbox_connect::{Address, Form, Scheme, max_body, timeout};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

use crate::route::SHORT;

const URL: Form = Form {
    schemes: &[Scheme::plain("amqp", 5672), Scheme::tls("amqps", 5671)],
    several: false,
    path: true,
    remedy: "write it as `amqps://HOST:PORT/VHOST`",
};

pillarbox_connect::server_options! {
    /// The address of RabbitMQ, and the options of publishing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pillarbox_rabbitmq::RabbitMqOptions;
    ///
    /// let mut options = RabbitMqOptions::new("amqps://relay@rabbit.example.com/shop");
    /// options.password = Some("not in the URL".into());
    /// options.timeout = Duration::from_secs(5);
    /// ```
    pub struct RabbitMqOptions {
        /// `amqp://HOST[:PORT][/VHOST]`, or `amqps://…` with TLS. The port is 5672, with TLS 5671, and the virtual host `/` unless
        /// it says otherwise; a `/` in the name of one is written `%2F`. It may hold `USER:PASSWORD@`. Without a user it is
        /// `guest` with the password `guest`, which RabbitMQ accepts from its own machine only.
        pub url: Secret,
        /// The largest body that is sent, in bytes. It should not exceed the broker's `max_message_size`, beyond which RabbitMQ
        /// closes the channel and the other messages on it are sent again. Default: 16,777,216, as RabbitMQ 4 has it.
        #[serde(default = "sixteen_mebibytes")]
        pub max_body: usize = sixteen_mebibytes(),
    }
}

impl RabbitMqOptions {
    /// Validates all options and returns the address of the broker and the login.
    pub(crate) fn validate(&self) -> Result<(Address, Option<(String, Secret)>), ConfigError> {
        let address = self.address(URL, &timeout::RANGE)?;
        if address.path.as_ref().is_some_and(|vhost| vhost.len() > SHORT) {
            return Err(address.refuse(format!("has a virtual host of more than {SHORT} bytes")));
        }
        let login = address.login.clone().pair()?;
        max_body::check(self.max_body)?;
        Ok((address, login))
    }
}

fn sixteen_mebibytes() -> usize {
    16 * 1024 * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RabbitMqPublisher;

    #[test]
    fn invalid_settings_are_refused_with_their_field_and_no_secret() {
        type Change = fn(&mut RabbitMqOptions);
        let refused: [(&str, &str, Change); 5] = [
            ("url", "plaintext = true", |o| o.url = "amqp://user:hunter2@far.example".into()),
            ("url", "%2F", |o| o.url = "amqp://localhost/a/b".into()),
            ("url", "more than 255 bytes", |o| o.url = format!("amqp://localhost/{}", "x".repeat(256)).into()),
            ("username", "is missing", |o| o.password = Some("hunter2".into())),
            ("max_body", "is 0", |o| o.max_body = 0),
        ];
        for (field, problem, change) in refused {
            let mut options = RabbitMqOptions::new("amqp://localhost");
            assert!(options.validate().is_ok());
            change(&mut options);
            let error = options.validate().map(|_| ()).expect_err(problem);
            let text = error.to_string();
            assert_eq!(error.field(), field, "{text}");
            assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
        }
    }

    #[test]
    fn a_url_names_a_virtual_host() {
        let publisher = |url: &str| RabbitMqPublisher::new(RabbitMqOptions::new(url)).expect(url);
        for (url, vhost, address) in [
            ("amqp://localhost", "/", "amqp://localhost:5672"),
            ("amqp://localhost/%2f", "/", "amqp://localhost:5672"),
            ("amqps://u:p%40ss@far.example:7000/shop", "shop", "amqps://far.example:7000/shop"),
            ("amqps://[::1]/a%2Fb/", "a/b", "amqps://[::1]:5671/a/b"),
        ] {
            let publisher = publisher(url);
            assert_eq!((&*publisher.vhost, &*publisher.info.address), (vhost, address));
        }
        assert_eq!(publisher("amqp://u%3A:p%40ss@[::1]").login, Some(("u:".to_owned(), "p@ss".into())));
    }

    #[test]
    fn a_configuration_names_what_differs_from_the_defaults() {
        let read = |json: &str| serde_json::from_str::<RabbitMqOptions>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"url":"amqp://localhost"}"#), Ok(RabbitMqOptions::new("amqp://localhost")));
        assert!(read(r#"{"url":"amqp://localhost","max_body":8}"#).is_ok_and(|it| it.max_body == 8));
        assert!(read(r#"{"url":"amqp://localhost","exchange":"x"}"#).is_err_and(|e| e.contains("exchange")));
    }
}
