use std::path::PathBuf;

use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Secret, is_this_host};
use url::Url;

use crate::NatsOptions;

/// Where the servers are, without credentials, and the credentials.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    pub(crate) addresses: Vec<ServerAddr>,
    /// For people.
    pub(crate) shown: String,
    pub(crate) login: Login,
}

/// How this process says who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Nobody,
    Token(Secret),
    Password(String, Secret),
    File(PathBuf),
    Nkey(Secret),
}

/// More servers than any cluster's clients are told of.
const MOST_SERVERS: usize = 64;

impl Servers {
    pub(crate) fn of(options: &NatsOptions) -> Result<Self, ConfigError> {
        let mut logins = named(options);
        let (mut addresses, mut shown) = (Vec::new(), Vec::new());
        for text in options.url.expose().split(',').map(str::trim) {
            let mut url = parse(text)?;
            if !options.plaintext && url.scheme() == "nats" && !url.host_str().is_some_and(is_this_host) {
                let problem = format!("leads to {} without TLS", url.host_str().unwrap_or_default());
                let remedy = "write `tls://` before its name, or set `plaintext = true` if the network is trusted";
                return Err(ConfigError::new("url", problem, remedy));
            }
            if let Some(login) = take_login(&mut url)?
                && !logins.contains(&login)
            {
                logins.push(login);
            }
            shown.push(url.as_str().trim_end_matches('/').to_owned());
            // Its text names the scheme alone.
            let address =
                ServerAddr::from_url(url).map_err(|error| ConfigError::new("url", error.to_string(), REMEDY))?;
            addresses.push(address);
        }
        if addresses.len() > MOST_SERVERS {
            let problem = format!("names {} servers", addresses.len());
            return Err(ConfigError::new("url", problem, "name 64 at most"));
        }
        let mut logins = logins.into_iter();
        let login = logins.next().unwrap_or(Login::Nobody);
        if logins.next().is_some() {
            return Err(ConfigError::new(
                "url",
                "comes with more than one set of credentials",
                "keep one of: those in `url`, the same for all servers; `token`; `username` and `password`; \
                 `credentials_file`; `nkey`",
            ));
        }
        Ok(Self { addresses, shown: shown.join(","), login })
    }
}

const REMEDY: &str = "write `nats://HOST:PORT` or `tls://HOST:PORT`, several with commas between them";

/// The credentials that options of their own name.
fn named(options: &NatsOptions) -> Vec<Login> {
    let password = options.username.clone().zip(options.password.clone());
    let password = password.map(|(username, password)| Login::Password(username, password));
    let others = [
        options.token.clone().map(Login::Token),
        options.credentials_file.clone().map(Login::File),
        options.nkey.clone().map(Login::Nkey),
    ];
    password.into_iter().chain(others.into_iter().flatten()).collect()
}

fn parse(text: &str) -> Result<Url, ConfigError> {
    // The parser's errors quote nothing of the text, which may hold a password.
    let url = if text.contains("://") { text.parse::<Url>() } else { format!("nats://{text}").parse() };
    let url = url.map_err(|error| ConfigError::new("url", format!("is malformed: {error}"), REMEDY))?;
    if !matches!(url.scheme(), "nats" | "tls") {
        return Err(ConfigError::new("url", format!("begins with `{}://`", url.scheme()), REMEDY));
    }
    let bare = url.query().is_none() && url.fragment().is_none() && matches!(url.path(), "" | "/");
    if !bare || url.host_str().is_none_or(str::is_empty) {
        return Err(ConfigError::new("url", "is no host with a port", REMEDY));
    }
    Ok(url)
}

/// Takes the credentials out of an address, so that neither logs nor the client's own errors can show them.
fn take_login(url: &mut Url) -> Result<Option<Login>, ConfigError> {
    let decode = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
        text.map_err(|_| ConfigError::new("url", "holds credentials that are no UTF-8", "percent-encode their UTF-8"))
    };
    let login = match (url.username(), url.password()) {
        ("", None) => return Ok(None),
        (token, None) => Login::Token(decode(token)?.into()),
        (username, Some(password)) => Login::Password(decode(username)?, decode(password)?.into()),
    };
    // Refused for addresses without a host alone, of which there are none here.
    let removed = url.set_username("").and_then(|()| url.set_password(None));
    removed.map(|()| Some(login)).map_err(|()| ConfigError::new("url", "is no host with a port", REMEDY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(url: &str, change: impl FnOnce(&mut NatsOptions)) -> Result<Servers, ConfigError> {
        let mut options = NatsOptions::new(url);
        change(&mut options);
        Servers::of(&options)
    }

    #[test]
    fn several_servers_are_read_and_their_credentials_are_not_shown() {
        let read = servers("tls://relay:p%40ss@a.internal, tls://relay:p%40ss@b.internal:4333/", |_| {}).expect("read");
        assert_eq!(read.login, Login::Password("relay".to_owned(), "p@ss".into()));
        assert_eq!(read.shown, "tls://a.internal,tls://b.internal:4333");
        assert!(!format!("{read:?}").contains("p@ss") && !format!("{read:?}").contains("p%40ss"));
        let token = servers("localhost:4222", |options| options.token = Some("t".into())).expect("read");
        assert_eq!((token.login, token.addresses.len()), (Login::Token("t".into()), 1));
        assert_eq!(servers("nats://t@localhost", |_| {}).expect("read").login, Login::Token("t".into()));
        assert_eq!(servers("nats://[::1]:4222", |_| {}).expect("read").login, Login::Nobody);
    }

    #[test]
    fn plaintext_to_another_machine_is_refused_with_both_remedies() {
        for url in ["nats://broker.internal", "tls://a.internal,nats://hunter2@b.internal", "10.0.0.7:4222"] {
            let error = servers(url, |_| {}).expect_err("refused").to_string();
            assert!(error.contains("`tls://`") && error.contains("`plaintext = true`"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            assert!(servers(url, |options| options.plaintext = true).is_ok());
        }
    }

    #[test]
    fn what_is_no_server_is_refused_without_showing_it() {
        for url in ["", "http://x", "nats://", "nats://h:99999", "ws://h", "nats://u:hunter2@h/p?q", "nats://hunter2@"]
        {
            let error = servers(url, |_| {}).expect_err(url);
            assert_eq!(error.field(), "url");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn two_sets_of_credentials_are_refused() {
        assert!(servers("nats://a@localhost,nats://b@localhost", |_| {}).is_err());
        assert!(servers("nats://a@localhost", |options| options.credentials_file = Some("x".into())).is_err());
        assert!(
            servers("localhost", |options| {
                options.token = Some("a".into());
                options.nkey = Some("b".into());
            })
            .is_err()
        );
        assert!(servers("nats://a@localhost,nats://localhost:1", |_| {}).is_ok());
    }
}
