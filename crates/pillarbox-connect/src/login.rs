use std::fmt;

use percent_encoding::percent_decode_str;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

/// The user to log in as, and the password. `Debug` shows neither: some take a token where the user stands.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Login {
    /// The user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<Secret>,
}

impl Login {
    /// Reads the part before the `@` of a URL: `user:password`, percent-encoded. An empty user is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (username, password) = text.split_once(':').map_or((text, None), |(user, password)| (user, Some(password)));
        let username = Some(decode(username)?).filter(|username| !username.is_empty());
        let password = match password {
            // A template whose two variables are not set.
            Some("") if username.is_none() => None,
            Some(password) => Some(Secret::new(decode(password)?)),
            None => None,
        };
        Some(Self { username, password })
    }

    /// Adds what the options `username` and `password` say.
    ///
    /// # Errors
    /// Where the URL says it too, and where there is a user without a password.
    pub fn with(self, username: Option<&str>, password: Option<&Secret>) -> Result<Self, ConfigError> {
        if username.is_some() && self.username.is_some() {
            return Err(ConfigError::new("username", "is set, and the URL has a user too", "remove one of them"));
        }
        if password.is_some() && self.password.is_some() {
            return Err(ConfigError::new("password", "is set, and the URL has a password too", "remove one of them"));
        }
        let login = Self {
            username: self.username.or_else(|| username.map(str::to_owned)),
            password: self.password.or_else(|| password.cloned()),
        };
        if login.username.is_some() && login.password.is_none() {
            return Err(ConfigError::new("password", "is missing, and there is a user", "set `password`"));
        }
        Ok(login)
    }

    /// User and password, for those who know no password without a user.
    ///
    /// # Errors
    /// Where there is one without the other.
    pub fn pair(self) -> Result<Option<(String, Secret)>, ConfigError> {
        match (self.username, self.password) {
            (Some(username), Some(password)) => Ok(Some((username, password))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ConfigError::new("password", "is missing, and there is a user", "set both")),
            (None, Some(_)) => Err(ConfigError::new("username", "is missing, and there is a password", "set both")),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(hidden)")
    }
}

/// `None` where it is no UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<String>, Option<String>) {
        let login = Login::read(text).expect(text);
        assert!(!format!("{login:?}").contains("hunter2"));
        (login.username, login.password.map(|password| password.expose().to_owned()))
    }

    #[test]
    fn users_and_passwords_are_decoded() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("relay:hunter2"), (some("relay"), some("hunter2")));
        assert_eq!(read("u%3A%40:p%40%2Fs%C3%A9%25"), (some("u:@"), some("p@/sé%")));
        assert_eq!(read("u:a:b@c"), (some("u"), some("a:b@c")));
        assert_eq!(read("hunter2"), (some("hunter2"), None));
        assert_eq!(read(":hunter2"), (None, some("hunter2")));
        assert_eq!(read("relay:"), (some("relay"), some("")));
        assert_eq!((read(""), read(":")), ((None, None), (None, None)));
        assert_eq!((Login::read("u:%FF"), Login::read("%FF:p")), (None, None));
    }

    #[test]
    fn a_pair_is_both_or_neither() {
        let pair = |url: &str| Login::read(url).expect(url).pair().map_err(|error| error.field());
        assert_eq!(pair("u:p"), Ok(Some(("u".to_owned(), "p".into()))));
        assert_eq!(pair(""), Ok(None));
        assert_eq!((pair("u"), pair(":p")), (Err("password"), Err("username")));
    }
}
