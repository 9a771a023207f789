//! The options that all clients of servers share, tested once for all of them.

use std::time::Duration;

use pillarbox_connect::{Form, Scheme, timeout};
use pillarbox_core::publisher::Secret;

pillarbox_connect::server_options! {
    /// Of a client with options of its own.
    pub struct Options {
        /// `one://HOST`, or `ones://HOST` with TLS.
        pub url: Secret,
        /// A number that may be missing.
        #[serde(default)]
        pub max_length: Option<u64> = None,
        /// A number with a default.
        #[serde(default = "eight")]
        pub max_body: usize = eight(),
    }
}

fn eight() -> usize {
    8
}

const URL: Form = Form {
    schemes: &[Scheme::plain("one", 1), Scheme::tls("ones", 2)],
    several: false,
    path: false,
    remedy: "write it as `ones://HOST:PORT`",
};

type Change = fn(&mut Options);

fn checked(change: Change) -> Result<String, (&'static str, String)> {
    let mut options = Options::new("one://localhost");
    change(&mut options);
    let address = options.address(URL, &timeout::RANGE);
    address.map(|it| it.to_string()).map_err(|error| (error.field(), error.to_string()))
}

#[test]
fn invalid_settings_are_refused_with_their_field_and_no_secret() {
    let refused: [(&str, &str, Change); 9] = [
        ("url", "plaintext = true", |o| o.url = "one://user:hunter2@far.example".into()),
        ("url", "write it as `ones://HOST:PORT`", |o| o.url = "http://:hunter2@localhost".into()),
        ("url", "several hosts", |o| o.url = "one://localhost,127.0.0.1".into()),
        ("ca_file", "without TLS; write `ones://`", |o| o.ca_file = Some("/ca.pem".into())),
        ("username", "a user too", |o| {
            (o.url, o.username) = ("one://a:hunter2@localhost".into(), Some("b".into()));
        }),
        ("password", "a password too", |o| {
            (o.url, o.password) = ("one://a:hunter2@localhost".into(), Some("hunter2".into()));
        }),
        ("password", "is missing", |o| o.username = Some("b".into())),
        ("password", "is missing", |o| o.url = "one://a@localhost".into()),
        ("timeout", "is 0s", |o| o.timeout = Duration::ZERO),
    ];
    for (field, problem, change) in refused {
        let (named, text) = checked(change).expect_err(problem);
        assert_eq!(named, field, "{text}");
        assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
    }
}

#[test]
fn another_machine_is_reached_with_tls_or_on_purpose() {
    for (change, address) in [
        ((|_| {}) as Change, "one://localhost:1"),
        (|o| o.url = "ones://u:p@far.example".into(), "ones://far.example:2"),
        (|o| (o.url, o.plaintext) = ("one://far.example".into(), true), "one://far.example:1"),
        (|o| (o.url, o.ca_file) = ("ones://far.example".into(), Some("/ca.pem".into())), "ones://far.example:2"),
    ] {
        assert_eq!(checked(change), Ok(address.to_owned()));
    }
}

#[test]
fn user_and_password_come_from_the_url_or_the_options() {
    for (url, username, password) in
        [("u:p@", None, None), ("u@", None, Some("p")), (":p@", Some("u"), None), ("", Some("u"), Some("p"))]
    {
        let mut options = Options::new(format!("one://{url}localhost"));
        (options.username, options.password) = (username.map(str::to_owned), password.map(Secret::from));
        let login = options.address(URL, &timeout::RANGE).expect(url).login;
        assert_eq!(login.pair(), Ok(Some(("u".to_owned(), "p".into()))), "{url}");
    }
    let mut options = Options::new("one://localhost");
    options.password = Some("p".into());
    let alone = options.address(URL, &timeout::RANGE).expect("a password without a user").login;
    assert_eq!((alone.username, alone.password), (None, Some("p".into())));
}

#[test]
fn a_configuration_names_what_differs_from_the_defaults() {
    let json = |text: &str| serde_json::from_str::<Options>(text).map_err(|error| error.to_string());
    let toml = |text: &str| toml::from_str::<Options>(text).map_err(|error| error.to_string());
    assert_eq!(json(r#"{"url":"one://h"}"#), Ok(Options::new("one://h")));
    assert_eq!(toml("url = \"one://h\""), Ok(Options::new("one://h")));

    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hunter2\n").expect("writes");
    let path = file.path().display();
    let mut all = Options::new("one://hunter2@h");
    (all.username, all.password) = (Some("u".to_owned()), Some("hunter2".into()));
    (all.timeout, all.plaintext, all.ca_file) = (Duration::from_secs(5), true, Some("/ca.pem".into()));
    (all.max_length, all.max_body) = (Some(9), 7);
    let read = json(&format!(
        r#"{{"url":"one://hunter2@h","username":"u","password":{{"file":"{path}"}},"timeout":"5s","plaintext":true,
            "ca_file":"/ca.pem","max_length":9,"max_body":7}}"#
    ));
    assert_eq!(read, Ok(all.clone()));
    let read = toml(&format!(
        "url = \"one://hunter2@h\"\nusername = \"u\"\npassword = {{ file = \"{path}\" }}\ntimeout = \"5s\"\n\
         plaintext = true\nca_file = \"/ca.pem\"\nmax_length = 9\nmax_body = 7\n"
    ));
    assert_eq!(read, Ok(all.clone()));
    assert!(!format!("{all:?}").contains("hunter2"));
}

#[test]
fn configuration_errors_name_their_line_and_the_known_fields() {
    let error = |text: &str| toml::from_str::<Options>(text).expect_err(text).to_string();
    for (line, problem) in [
        ("timeout = \"soon\"", "\"soon\" is no duration"),
        ("plaintext = \"yes\"", "expected a boolean"),
        ("max_body = -1", "expected usize"),
        (
            "usrname = \"u\"",
            "unknown field `usrname`, expected one of `url`, `username`, `password`, `timeout`, `plaintext`, `ca_file`, \
             `max_length`, `max_body`",
        ),
    ] {
        let error = error(&format!("url = \"one://h\"\n{line}"));
        assert!(error.contains("line 2") && error.contains(problem), "{error}");
    }
    assert!(error("").contains("missing field `url`"));
}
