use std::path::PathBuf;

use async_nats::ServerAddr;
use pillarbox_connect::{Form, Login as Given, Scheme};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

use crate::NatsOptions;

/// Of one server: each has a scheme, and may have credentials.
const URL: Form = Form {
    schemes: &[Scheme::plain("nats", 4222), Scheme::tls("tls", 4222)],
    several: false,
    path: false,
    remedy: "write `nats://HOST:PORT` or `tls://HOST:PORT`, several with commas between them",
};

/// The addresses of the servers, without credentials, and the credentials.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    pub(crate) addresses: Vec<ServerAddr>,
    /// For people.
    pub(crate) shown: String,
    /// True if one of them is asked for TLS.
    pub(crate) tls: bool,
    pub(crate) login: Login,
}

/// The credentials of this process.
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
        let mut logins = named(options)?;
        let (mut addresses, mut shown, mut tls) = (Vec::new(), Vec::new(), false);
        for text in options.url.expose().split(',').map(str::trim) {
            let server = if text.contains("://") { URL.read(text)? } else { URL.read(&format!("nats://{text}"))? };
            // A `ca_file` is of use whatever the address says: a server may ask for TLS by itself.
            server.check_protection(options.plaintext, None)?;
            tls |= server.scheme.tls;
            let text = server.to_string();
            addresses.push(text.parse().map_err(|error: std::io::Error| server.refuse(error.to_string()))?);
            shown.push(text);
            logins.extend(login(server.login)?.filter(|login| !logins.contains(login)));
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
        Ok(Self { addresses, shown: shown.join(","), tls, login })
    }
}

/// The credentials that options of their own name.
fn named(options: &NatsOptions) -> Result<Vec<Login>, ConfigError> {
    let password = Given::default().with(options.username.as_deref(), options.password.as_ref())?.pair()?;
    let others = [
        password.map(|(username, password)| Login::Password(username, password)),
        options.token.clone().map(Login::Token),
        options.credentials_file.clone().map(Login::File),
        options.nkey.clone().map(Login::Nkey),
    ];
    Ok(others.into_iter().flatten().collect())
}

/// The credentials of an address. A user without a password is a token.
fn login(given: Given) -> Result<Option<Login>, ConfigError> {
    match given {
        Given { username: Some(token), password: None, .. } => Ok(Some(Login::Token(token.into()))),
        both => Ok(both.pair()?.map(|(username, password)| Login::Password(username, password))),
    }
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
        assert_eq!((&*read.shown, read.tls), ("tls://a.internal:4222,tls://b.internal:4333", true));
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
    fn malformed_server_urls_are_refused_without_being_shown() {
        for url in ["", "ws://h", "nats://localhost,", "nats://u:hunter2@h/p", "nats://hunter2@"] {
            let error = servers(url, |_| {}).expect_err(url);
            assert_eq!(error.field(), "url");
            assert!(error.to_string().contains("write `nats://HOST:PORT` or `tls://HOST:PORT`"), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let half = |change: fn(&mut NatsOptions)| servers("localhost", change).expect_err("refused").field();
        assert_eq!(half(|options| options.username = Some("relay".to_owned())), "password");
        assert_eq!(half(|options| options.password = Some("hunter2".into())), "username");
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
