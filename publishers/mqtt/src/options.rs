use pillarbox_connect::{Address, Form, Scheme, max_body, timeout};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

const URL: Form = Form {
    schemes: &[Scheme::plain("mqtt", 1883), Scheme::tls("mqtts", 8883)],
    several: false,
    path: false,
    remedy: "write it as `mqtts://HOST:PORT`",
};

pillarbox_connect::server_options! {
    /// The address of the broker, and the options of publishing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pillarbox_mqtt::MqttOptions;
    ///
    /// let mut options = MqttOptions::new("mqtts://broker.example.com");
    /// options.username = Some("relay".to_owned());
    /// options.password = Some("not in the URL".into());
    /// options.timeout = Duration::from_secs(5);
    /// ```
    pub struct MqttOptions {
        /// `mqtt://HOST[:PORT]`, or `mqtts://…` with TLS. The port is 1883, with TLS 8883, unless it says otherwise. It may hold
        /// `USER:PASSWORD@`.
        pub url: Secret,
        /// The name of this client. A broker cuts the connection of one client when another comes with its name, so each process
        /// needs its own. Default: one that the broker makes up for each connection.
        #[serde(default)]
        pub client_id: Option<String> = None,
        /// The largest body that is sent, in bytes. It must not exceed the broker's limit for payloads, such as Mosquitto's
        /// `message_size_limit`, beyond which the connection is lost again and again. What the broker says of packets when it is
        /// connected to is respected besides. Default: 268,000,000, about as much as MQTT knows.
        #[serde(default = "about_a_quarter_of_a_gibibyte")]
        pub max_body: usize = about_a_quarter_of_a_gibibyte(),
    }
}

impl MqttOptions {
    /// Validates all options and returns the address of the broker and the login.
    pub(crate) fn validate(&self) -> Result<(Address, Option<(String, Secret)>), ConfigError> {
        let address = self.address(URL, &timeout::RANGE)?;
        let login = address.login.clone().pair()?;
        if let Some(id) = &self.client_id
            && let Some(problem) = crate::packet::unsuitable(id)
        {
            return Err(ConfigError::new("client_id", problem, "choose another"));
        }
        max_body::check(self.max_body)?;
        Ok((address, login))
    }
}

fn about_a_quarter_of_a_gibibyte() -> usize {
    268_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused_with_their_field_and_no_secret() {
        type Change = fn(&mut MqttOptions);
        let refused: [(&str, &str, Change); 5] = [
            ("url", "plaintext = true", |o| o.url = "mqtt://user:hunter2@far.example".into()),
            ("url", "has a path", |o| o.url = "mqtt://localhost/orders".into()),
            ("username", "is missing", |o| o.password = Some("hunter2".into())),
            ("client_id", "control character", |o| o.client_id = Some("a\n".to_owned())),
            ("max_body", "is 0", |o| o.max_body = 0),
        ];
        for (field, problem, change) in refused {
            let mut options = MqttOptions::new("mqtt://localhost");
            assert!(options.validate().is_ok());
            change(&mut options);
            let error = options.validate().map(|_| ()).expect_err(problem);
            let text = error.to_string();
            assert_eq!(error.field(), field, "{text}");
            assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
        }
    }

    #[test]
    fn a_url_says_where_the_broker_is_and_whom_to_log_in_as() {
        let read = |url: &str| MqttOptions::new(url).validate().expect(url);
        assert_eq!(read("mqtt://localhost").0.to_string(), "mqtt://localhost:1883");
        let (address, login) = read("mqtts://u%3A:p%40ss@far.example/");
        assert_eq!(
            (&*address.to_string(), login),
            ("mqtts://far.example:8883", Some(("u:".to_owned(), "p@ss".into())))
        );
    }

    #[test]
    fn a_configuration_names_what_differs_from_the_defaults() {
        let read = |json: &str| serde_json::from_str::<MqttOptions>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"url":"mqtt://localhost"}"#), Ok(MqttOptions::new("mqtt://localhost")));
        let mut all = MqttOptions::new("mqtt://localhost");
        (all.client_id, all.max_body) = (Some("relay-1".to_owned()), 8);
        assert_eq!(read(r#"{"url":"mqtt://localhost","client_id":"relay-1","max_body":8}"#), Ok(all));
        assert!(read(r#"{"url":"mqtt://localhost","clientid":1}"#).is_err_and(|e| e.contains("clientid")));
    }
}
