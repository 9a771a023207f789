/// Declares the options of a client that reaches its server by a URL: those that all such clients share, and its own.
///
/// The struct begins with `url`. It gets the fields `username`, `password`, `timeout`, `plaintext` and `ca_file`, then its own, each
/// written with its default. It can be read from a configuration that has no other keys, and has two functions: `new(url)`, with the
/// defaults, and `address`, for its own crate, which validates the shared options and gives the [`Address`](crate::Address) with the
/// credentials of both the URL and the options.
///
/// A macro, and no struct to embed with `#[serde(flatten)]`: serde reads the fields of such a struct only once the whole map has been
/// read. Their errors could name neither key nor line, and that of an unknown key could not list those that exist.
///
/// ```
/// use pillarbox_connect::{Form, Scheme, timeout};
/// use pillarbox_core::publisher::Secret;
///
/// pillarbox_connect::server_options! {
///     /// The address of the broker, and the options of publishing.
///     pub struct MqttOptions {
///         /// `mqtt://HOST[:PORT]`, or `mqtts://…` with TLS.
///         pub url: Secret,
///         /// The name of this client. Default: one that the broker makes up.
///         #[serde(default)]
///         pub client_id: Option<String> = None,
///     }
/// }
///
/// const URL: Form = Form {
///     schemes: &[Scheme::plain("mqtt", 1883), Scheme::tls("mqtts", 8883)],
///     several: false,
///     path: false,
///     remedy: "write it as `mqtts://HOST:PORT`",
/// };
///
/// let mut options = MqttOptions::new("mqtt://relay:hunter2@broker.example.com");
/// let error = options.address(URL, &timeout::RANGE).expect_err("is not encrypted").to_string();
/// assert!(error.ends_with("write `mqtts://` for TLS, or set `plaintext = true` if the network is trusted"));
/// options.plaintext = true;
/// assert_eq!(options.address(URL, &timeout::RANGE)?.login.username.as_deref(), Some("relay"));
/// # Ok::<(), pillarbox_core::error::ConfigError>(())
/// ```
#[macro_export]
macro_rules! server_options {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$url:meta])*
            pub url: $secret:ty,
            $($(#[$own:meta])* pub $field:ident: $kind:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, $crate::serde::Deserialize)]
        #[serde(crate = "pillarbox_connect::serde", deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $name {
            $(#[$url])*
            pub url: $secret,
            /// The user to log in as. Default: the user of `url`, otherwise none.
            #[serde(default)]
            pub username: Option<String>,
            /// The password of that user. Default: the password of `url`, otherwise none.
            #[serde(default)]
            pub password: Option<$secret>,
            /// The limit of one call, connecting included. Default: 10 s.
            #[serde(default = "pillarbox_connect::timeout::default", deserialize_with = "pillarbox_connect::timeout::read")]
            pub timeout: std::time::Duration,
            /// Allows a connection without TLS to another machine. Default: no.
            #[serde(default)]
            pub plaintext: bool,
            /// The certificate authorities to trust, a PEM file. Default: the system's.
            #[serde(default)]
            pub ca_file: Option<std::path::PathBuf>,
            $($(#[$own])* pub $field: $kind,)*
        }

        impl $name {
            /// The defaults, with this URL.
            pub fn new(url: impl Into<$secret>) -> Self {
                Self {
                    url: url.into(),
                    username: None,
                    password: None,
                    timeout: $crate::timeout::default(),
                    plaintext: false,
                    ca_file: None,
                    $($field: $default,)*
                }
            }

            /// Validates the options that all clients share, and reads the URL, with the credentials of both.
            pub(crate) fn address(
                &self,
                form: $crate::Form,
                timeouts: &std::ops::RangeInclusive<std::time::Duration>,
            ) -> Result<$crate::Address, $crate::pillarbox_core::error::ConfigError> {
                let mut address = form.read(self.url.expose())?;
                address.check_protection(self.plaintext, self.ca_file.as_deref())?;
                address.login = address.login.with(self.username.as_deref(), self.password.as_ref())?;
                $crate::timeout::check(self.timeout, timeouts)?;
                Ok(address)
            }
        }
    };
}
