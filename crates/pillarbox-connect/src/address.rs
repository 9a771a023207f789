use std::fmt;
use std::path::Path;

use pillarbox_core::error::ConfigError;

use crate::login::decode;
use crate::{Host, Login, refuse_plaintext};

/// The syntax of the URL of a kind of server: `scheme://user:password@host:port/path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// The schemes that it may begin with.
    pub schemes: &'static [Scheme],
    /// True if it may name several hosts, with commas between them.
    pub several: bool,
    /// True if it may have a path, of one part.
    pub path: bool,
    /// The remedy that errors name: "write it as `mqtts://HOST:PORT`".
    pub remedy: &'static str,
}

/// The scheme of a URL, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheme {
    /// The text before `://`, in small letters.
    pub name: &'static str,
    /// True if it asks for TLS.
    pub tls: bool,
    /// The port where none is named.
    pub port: u16,
}

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address {
    /// The scheme that it begins with.
    pub scheme: Scheme,
    /// The host of the server.
    pub host: Host,
    /// The further hosts, if it is a cluster.
    pub others: Vec<Host>,
    /// The path, decoded.
    pub path: Option<String>,
    /// The credentials.
    pub login: Login,
    form: Form,
}

impl Scheme {
    /// One without TLS.
    #[must_use]
    pub const fn plain(name: &'static str, port: u16) -> Self {
        Self { name, tls: false, port }
    }

    /// One with TLS.
    #[must_use]
    pub const fn tls(name: &'static str, port: u16) -> Self {
        Self { name, tls: true, port }
    }
}

impl Form {
    /// Reads a URL. Nothing is connected to.
    ///
    /// # Errors
    /// When it is written in another way. The error does not repeat it.
    pub fn read(self, url: &str) -> Result<Address, ConfigError> {
        let refuse = |problem: &str| self.refuse(problem.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("is no URL"))?;
        let scheme = self.scheme(scheme)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if rest.contains('@') {
            // Most likely a password with one of the three in it, so what precedes it is no host.
            return Err(ConfigError::new(
                "url",
                "has an `@` behind a `/`, `?` or `#`",
                "write these as %40, %2F, %3F and %23 within a user, a password or a path",
            ));
        }
        if rest.contains(['?', '#']) {
            return Err(refuse("has a query or a fragment"));
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            // A user before another host than the first would make those in front of it a part of its name.
            Some((login, _)) if self.several && login.contains(',') => {
                let remedy = "name the user once, before the first host, and write a comma within a password as %2C";
                return Err(ConfigError::new("url", "has a comma before its last `@`", remedy));
            }
            Some((login, hosts)) => (Login::read(login), hosts),
            None => (Some(Login::default()), authority),
        };
        let login =
            login.ok_or_else(|| refuse("has a user or a password that is no text: percent-encoded, but no UTF-8"))?;
        let mut hosts = hosts.split(',').map(|host| Host::read(host.trim(), scheme.port).map_err(refuse));
        let host = hosts.next().unwrap_or_else(|| Err(refuse("has no host")))?;
        let others = hosts.collect::<Result<Vec<_>, _>>()?;
        if !self.several && !others.is_empty() {
            return Err(refuse("names several hosts, of which it takes one"));
        }
        Ok(Address { scheme, host, others, path: self.read_path(rest)?, login, form: self })
    }

    fn scheme(&self, text: &str) -> Result<Scheme, ConfigError> {
        let found = self.schemes.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| {
            let is_one =
                text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            self.refuse(if is_one { format!("begins with `{text}://`") } else { "begins with no scheme".to_owned() })
        })
    }

    fn read_path(&self, text: &str) -> Result<Option<String>, ConfigError> {
        let path = text.strip_prefix('/').unwrap_or(text);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            Ok(None)
        } else if !self.path {
            Err(self.refuse("has a path; what is published to is for each target to say".to_owned()))
        } else if path.contains('/') {
            Err(self.refuse("has a path of several parts; a `/` within one is written `%2F`".to_owned()))
        } else {
            let text = decode(path).ok_or_else(|| self.refuse("has a path that is no text".to_owned()))?;
            Ok(Some(text))
        }
    }

    fn refuse(&self, problem: String) -> ConfigError {
        ConfigError::new("url", problem, self.remedy)
    }

    /// The name of the scheme with TLS.
    fn tls(&self) -> &'static str {
        self.schemes.iter().find(|scheme| scheme.tls).map_or("", |scheme| scheme.name)
    }
}

impl Address {
    /// All hosts, in the order of the URL.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        std::iter::once(&self.host).chain(&self.others)
    }

    /// A problem of the URL, with how one is written: for what a crate knows of a URL beyond its form.
    #[must_use]
    pub fn refuse(&self, problem: impl Into<String>) -> ConfigError {
        self.form.refuse(problem.into())
    }

    /// Verifies that it is protected as the options say.
    ///
    /// # Errors
    /// Without TLS: when it leads to another machine and `plaintext` is not set, and when there is a `ca_file`, which nothing
    /// would be verified with.
    pub fn check_protection(&self, plaintext: bool, ca_file: Option<&Path>) -> Result<(), ConfigError> {
        if self.scheme.tls {
            return Ok(());
        }
        let tls = self.form.tls();
        for host in self.hosts() {
            refuse_plaintext("url", tls, &host.name, plaintext)?;
        }
        if ca_file.is_some() {
            let remedy = format!("write `{tls}://` in `url`, or remove `ca_file`");
            return Err(ConfigError::new("ca_file", "is set, and the connection is without TLS", remedy));
        }
        Ok(())
    }
}

/// The address of the server, for people: without credentials and without the path.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name, self.host)?;
        self.others.iter().try_for_each(|host| write!(f, ",{host}"))
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::Secret;

    use super::*;

    const ONE: Form = Form {
        schemes: &[Scheme::plain("one", 1), Scheme::tls("ones", 2)],
        several: false,
        path: true,
        remedy: "write it as `ones://HOST:PORT/PATH`",
    };
    const MANY: Form = Form { several: true, path: false, ..ONE };

    #[test]
    fn a_url_is_taken_apart_and_shown_without_its_credentials() {
        for (url, path, shown) in [
            ("one://localhost", None, "one://localhost:1"),
            ("ONES://localhost/", None, "ones://localhost:2"),
            ("ones://u:hunter2@h.example:7000/shop/", Some("shop"), "ones://h.example:7000"),
            ("one://:hunter2@[::1]:7000/a%2Fb", Some("a/b"), "one://[::1]:7000"),
            ("one://hunter2@[::1]", None, "one://[::1]:1"),
            ("one://@h/%C3%A9", Some("é"), "one://h:1"),
        ] {
            let address = ONE.read(url).expect(url);
            assert_eq!((address.path.as_deref(), &*address.to_string()), (path, shown));
            assert!(!format!("{address:?}").contains("hunter2"), "{address:?}");
        }
        let login = ONE.read("one://u%3A:p%40s,s@x@localhost").expect("a URL").login;
        assert_eq!(login.username.as_deref(), Some("u:"));
        assert_eq!(login.password.as_ref().map(Secret::expose), Some("p@s,s@x"));
    }

    #[test]
    fn several_hosts_stand_between_commas_and_each_is_protected() {
        let address = MANY.read("one://u:p@localhost:1, 127.0.0.1 ,[::1]:2,[::1]/").expect("a URL");
        assert_eq!(address.to_string(), "one://localhost:1,127.0.0.1:1,[::1]:2,[::1]:1");
        assert_eq!((address.hosts().count(), &*address.host.name), (4, "localhost"));
        assert_eq!(address.check_protection(false, None), Ok(()));
        let elsewhere = MANY.read("one://u@localhost,h.example").expect("a URL");
        let refused = elsewhere.check_protection(false, None).expect_err("leads elsewhere").to_string();
        assert!(refused.contains("to h.example") && refused.contains("`ones://`"), "{refused}");
    }

    #[test]
    fn urls_of_another_form_are_refused_without_being_shown() {
        for (form, url, problem) in [
            (ONE, "", "is no URL"),
            (ONE, "hunter2", "is no URL"),
            (ONE, "h.example:1", "is no URL"),
            (ONE, "http://u:hunter2@h", "begins with `http://`"),
            (ONE, "u:hunter2@h://", "begins with no scheme"),
            (ONE, "://h", "begins with"),
            (ONE, "one://", "has no host"),
            (ONE, "one:///shop", "has no host"),
            (ONE, "one://hunter2@", "has no host"),
            (ONE, "one://u:hunter2@:1", "has no host"),
            (ONE, "one://h:99999", "has a port that is no number"),
            (ONE, "one://u:hunter2", "has a port that is no number"),
            (ONE, "one://h?password=hunter2", "has a query"),
            (ONE, "one://h/shop#hunter2", "has a query or a fragment"),
            (ONE, "one://h/a/b", "`%2F`"),
            (ONE, "one://h//a", "`%2F`"),
            (ONE, "one://h/%FF", "has a path that is no text"),
            (ONE, "one://u:%FFhunter2@h", "is no text"),
            (ONE, "one://a,b", "names several hosts"),
            (ONE, "one://u:hunter2/3@h", "%40, %2F"),
            (ONE, "one://u:p@hunter2#3@h", "%40, %2F"),
            (ONE, "one://hunter2?@h", "%40, %2F"),
            (MANY, "one://a,b,", "has no host"),
            (MANY, "one://a,,b", "has no host"),
            (MANY, "one://a,b:x", "has a port"),
            (MANY, "one://a/shop", "has a path"),
            (MANY, "one://localhost:1,u:hunter2@b", "before the first host"),
        ] {
            let error = form.read(url).expect_err(url);
            assert_eq!(error.field(), "url");
            assert!(error.to_string().contains(problem), "{url}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(ONE.read("").expect_err("refused").to_string().contains("write it as `ones://HOST:PORT/PATH`"));
    }
}
