//! From a target to the URL that is posted to.

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use pillarbox_connect::refuse_plaintext;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{FailureScope, PublishError, Secret};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use crate::address::is_public;
use crate::options::WebhookOptions;

/// The least length of a secret: a part of a URL that is shorter is too short for one.
pub(crate) const LEAST: usize = 8;

/// The rules by which targets are read.
pub(crate) struct Targets {
    base: Option<Base>,
    plaintext: bool,
    allow_private: bool,
}

/// The URL that targets are below. It holds no credentials: they are in a header.
struct Base {
    url: Url,
    user: String,
    password: Option<String>,
}

/// Without the query, which may hold a token.
impl std::fmt::Debug for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Targets").field("below", &self.address()).finish_non_exhaustive()
    }
}

impl Targets {
    pub(crate) fn new(options: &WebhookOptions) -> Result<Self, ConfigError> {
        let base = options.url.as_ref().map(|url| Base::parse(url, options)).transpose()?;
        let targets = Self { base, plaintext: options.plaintext, allow_private: options.allow_private };
        if let Some(base) = &targets.base {
            targets.admit(&base.url)?;
        }
        Ok(targets)
    }

    /// The address that all requests go to, for people.
    pub(crate) fn address(&self) -> String {
        self.base.as_ref().map_or_else(|| "what each target says".to_owned(), |base| shown(&base.url))
    }

    /// User and password that the base has named.
    pub(crate) fn credentials(&self) -> Option<(&str, Option<&str>)> {
        let base = self.base.as_ref()?;
        (!base.user.is_empty() || base.password.is_some()).then_some((&base.user, base.password.as_deref()))
    }

    /// The parts of the base that no error shows: its credentials and its query. A user may be a key by itself.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret> {
        let base = self.base.as_ref();
        let user = base.map(|base| &*base.user).filter(|user| user.len() >= LEAST);
        let (password, query) =
            (base.and_then(|base| base.password.as_deref()), base.and_then(|base| base.url.query()));
        [user, password, query].into_iter().flatten().map(Secret::from)
    }

    /// The URL of a target.
    ///
    /// # Errors
    /// [`Permanent`](pillarbox_core::publisher::PublishErrorKind::Permanent) where it is malformed, since then its event has made
    /// it so; `Misconfigured` where an option forbids it. In words without secrets.
    pub(crate) fn url(&self, target: &str) -> Result<Url, PublishError> {
        let forbid = |problem: String| Err(PublishError::misconfigured(problem));
        let url = match &self.base {
            _ if target.trim().is_empty() => {
                return Err(PublishError::permanent("the target is empty; write a URL or a path"));
            }
            Some(base) if is_absolute(target) => {
                let url = parse(target)?;
                if !base.holds(&url) {
                    return forbid(format!(
                        "the target {} is not below the option `url`; use a publisher without `url` for it",
                        shown(&url)
                    ));
                }
                url
            }
            Some(base) => base.join(target)?,
            None if is_absolute(target) => parse(target)?,
            None => {
                let remedy = if target.contains("%3A%2F%2F") {
                    "a value of an event that is a URL itself is written `{+…}` in the template"
                } else {
                    "write one, or set the option `url`"
                };
                let shown = fingerprint(target);
                return forbid(format!("the target {shown} is no absolute URL; {remedy}"));
            }
        };
        match self.admit(&url) {
            Ok(()) => Ok(url),
            Err(error) => forbid(format!("the target {} {}; {}", shown(&url), error.problem(), error.remedy())),
        }
    }

    /// A target as it may be shown.
    pub(crate) fn shown(&self, target: &str) -> String {
        let url = match &self.base {
            Some(base) if !is_absolute(target) => base.join(target).ok(),
            _ => Url::parse(target).ok().filter(Url::has_host),
        };
        url.map_or_else(|| shown_text(target), |url| shown(&url))
    }

    /// The server of a target; `None` where the option `url` names the one for all of them.
    pub(crate) fn server(&self, target: &str) -> Option<String> {
        match &self.base {
            Some(_) => None,
            None => Some(Url::parse(target).ok()?.origin().ascii_serialization()),
        }
    }

    /// The server of all targets that begin so, as a target; `None` if it is not known from that.
    pub(crate) fn server_of_prefix(&self, prefix: &str) -> Option<String> {
        if let (Some(base), false) = (&self.base, is_absolute(prefix)) {
            return Some(base.url.to_string());
        }
        let (_, rest) = prefix.split_once("://")?;
        // The host is known to its end.
        rest.contains('/').then_some(())?;
        let url = Url::parse(prefix).ok()?;
        Some(format!("{}/", url.origin().ascii_serialization()))
    }

    /// The part of the destination that is in trouble where a server is.
    pub(crate) fn scope_of_server(&self) -> FailureScope {
        if self.base.is_some() { FailureScope::Broker } else { FailureScope::Server }
    }

    /// Checks that a URL may be used at all: by its scheme, and by its address where it names one.
    fn admit(&self, url: &Url) -> Result<(), ConfigError> {
        let refuse = |problem: &'static str| ConfigError::new("url", problem, "write https://host/path");
        let host = url.host().ok_or_else(|| refuse("names no host"))?;
        match url.scheme() {
            "https" => {}
            "http" => refuse_plaintext("url", "https", &host.to_string(), self.plaintext)?,
            _ => return Err(refuse("has a scheme that is not HTTP")),
        }
        let address = match host {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            // The addresses of a name are checked when it is looked up.
            Host::Domain(_) => return Ok(()),
        };
        if self.allow_private || is_public(address) {
            return Ok(());
        }
        let problem = format!("leads to {address}, which is no public address");
        Err(ConfigError::new("url", problem, "set `allow_private = true` if it is meant"))
    }
}

impl Base {
    fn parse(url: &Secret, options: &WebhookOptions) -> Result<Self, ConfigError> {
        let malformed = |problem: String| ConfigError::new("url", problem, "write https://host/path");
        let mut url = Url::parse(url.expose()).map_err(|error| malformed(format!("is no URL: {error}")))?;
        if url.cannot_be_a_base() || url.fragment().is_some() {
            return Err(malformed("is no URL to post to".to_owned()));
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = (decoded(url.username()), url.password().map(decoded));
        let here = !user.is_empty() || password.is_some();
        if here && (options.username.is_some() || options.token.is_some()) {
            let field = if options.token.is_some() { "token" } else { "username" };
            return Err(ConfigError::new(field, "contradicts the user in `url`", "leave one of them out"));
        }
        // Fails for URLs without a host only, which are refused for that.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Ok(Self { url, user, password })
    }

    /// A path below the base, with a query of its own behind the base's.
    fn join(&self, target: &str) -> Result<Url, PublishError> {
        let unusable = |why: &str| {
            let shown = fingerprint(target);
            PublishError::permanent(format!("the target {shown} {why}; write a path such as `orders/placed`"))
        };
        if target.chars().any(|c| c.is_control() || c == '\\' || c == '#') {
            return Err(unusable("has a character that a path cannot have"));
        }
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let (path, query) = (whole_percents(path), query.map(whole_percents));
        let path = path.trim_start_matches('/');
        if path.split('/').any(is_dots) {
            return Err(unusable("has a segment of dots"));
        }
        let mut url = self.url.clone();
        if !path.is_empty() {
            url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        }
        if let Some(query) = query {
            let both = self.url.query().map_or_else(|| query.to_string(), |own| format!("{own}&{query}"));
            url.set_query(Some(&both));
        }
        Ok(url)
    }

    fn holds(&self, url: &Url) -> bool {
        let own = self.url.path().trim_end_matches('/');
        let below = url.path().strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        url.origin() == self.url.origin() && below && !url.path().split('/').any(is_dots)
    }
}

fn parse(target: &str) -> Result<Url, PublishError> {
    // Before it is parsed: that resolves them, and a value of an event would lead to another place than the template says.
    if has_dots(target) {
        return Err(PublishError::permanent(format!(
            "the target {} has a segment of dots; write a path without `.` and `..`",
            fingerprint(target)
        )));
    }
    let mut url =
        Url::parse(target).map_err(|error| PublishError::permanent(format!("the target is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(PublishError::misconfigured(
            "the target holds credentials; they belong into the options of a publisher with `url`",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// True if a target begins with a scheme. One in its query does not count.
fn is_absolute(target: &str) -> bool {
    target.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Text in which each `%` begins an encoded byte: one that does not is encoded itself.
fn whole_percents(text: &str) -> Cow<'_, str> {
    let is_stray =
        |at: usize| !text.as_bytes().get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if !text.match_indices('%').any(|(at, _)| is_stray(at)) {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len() + 2);
    for (at, c) in text.char_indices() {
        whole.push(c);
        if c == '%' && is_stray(at) {
            whole.push_str("25");
        }
    }
    Cow::Owned(whole)
}

/// True if the path of an absolute URL, as it is written, has a segment of dots.
fn has_dots(url: &str) -> bool {
    // The characters that parsing passes over.
    let url = url.trim_matches(|c| c <= ' ');
    let text: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let behind_scheme = text.split_once("://").map_or(&*text, |(_, rest)| rest);
    let path = behind_scheme.split(['?', '#']).next().unwrap_or_default();
    // The first piece is the host.
    path.split(['/', '\\']).skip(1).any(is_dots)
}

/// True if a segment is `.` or `..`, or becomes such segments where something on the way decodes it, once or several times.
/// Parameters behind a `;` are no part of it.
fn is_dots(segment: &str) -> bool {
    const ROUNDS: usize = 4;
    let mut text = segment.to_owned();
    for _ in 0..ROUNDS {
        let mut pieces = text.split(['/', '\\']).map(|piece| piece.split(';').next().unwrap_or_default());
        if pieces.any(|piece| matches!(piece, "." | "..")) {
            return true;
        }
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    // Nobody encodes this often but to get somewhere.
    true
}

/// The scheme and host of a URL, and a fingerprint of the whole: a path may be as secret as a password, as with the incoming
/// webhooks of Slack, Discord and Teams. The fingerprint tells two URLs apart; `printf %s URL | sha256sum` begins with it.
pub(crate) fn shown(url: &Url) -> String {
    let origin = url.origin().ascii_serialization();
    if matches!(url.path(), "" | "/") && url.query().is_none() {
        return origin;
    }
    format!("{origin}/{}", fingerprint(url.as_str()))
}

/// Stands for text that may be secret.
fn fingerprint(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let beginning: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("<{beginning}>")
}

/// A target that is no URL by itself, such as a template, as it may be shown: a place alone as it is, of a URL the host.
fn shown_text(target: &str) -> String {
    let is_place = target.starts_with('{') && target.ends_with('}') && !target[1..].contains('{');
    if is_place {
        return target.to_owned();
    }
    match target.split_once("://") {
        Some((scheme, rest)) if is_absolute(target) => {
            let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{}", fingerprint(target))
        }
        _ => fingerprint(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(url: Option<&str>, change: impl FnOnce(&mut WebhookOptions)) -> Result<Targets, ConfigError> {
        let mut options = WebhookOptions { url: url.map(Secret::from), ..WebhookOptions::default() };
        change(&mut options);
        Targets::new(&options)
    }

    #[test]
    fn a_path_is_below_the_url() {
        let targets = targets(Some("https://u:hunter2@h.example/in/?key=hunter2"), |_| ()).expect("targets");
        for (target, url) in [
            ("orders", "https://h.example/in/orders?key=hunter2"),
            ("/orders/placed", "https://h.example/in/orders/placed?key=hunter2"),
            ("//evil.example/x", "https://h.example/in/evil.example/x?key=hunter2"),
            ("orders?a=b", "https://h.example/in/orders?key=hunter2&a=b"),
            ("a b/ü%", "https://h.example/in/a%20b/%C3%BC%25?key=hunter2"),
            ("100%/a%2Fb?c=50%", "https://h.example/in/100%25/a%2Fb?key=hunter2&c=50%25"),
            ("..a/.b", "https://h.example/in/..a/.b?key=hunter2"),
            ("a?to=https://x.example", "https://h.example/in/a?key=hunter2&to=https://x.example"),
            ("/", "https://h.example/in/?key=hunter2"),
            ("https://h.example/in/x", "https://h.example/in/x"),
        ] {
            assert_eq!(targets.url(target).as_ref().map(Url::as_str), Ok(url), "{target}");
        }
        for target in [
            "../x",
            "a/../x",
            "a/%2E%2e/x",
            "..%2foutside",
            "a%5C..%5Coutside",
            "..%252foutside",
            "%252e%252e",
            "%25252e%25252e%25252f",
            "..;v=1/x",
            "https://h.example/in/..%2fx",
            "./x",
            "a#b",
            "a\\b",
            "a\nb",
            "https://h.example/inner",
            "https://h.example/x",
            "https://evil.example/in/x",
            "http://h.example/in/x",
            "https://h.example:444/in/x",
            "https://u:hunter2@h.example/in/x",
            "https://h.example/in/%2e%2e/x",
        ] {
            let error = targets.url(target).expect_err(target).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(targets.address(), "https://h.example/<34174b62>", "the beginning of the URL's SHA-256");
        assert_eq!(targets.credentials(), Some(("u", Some("hunter2"))));
        assert!(!format!("{targets:?}").contains("hunter2"));
    }

    #[test]
    fn of_a_url_the_host_is_shown_and_what_may_be_secret_is_not() {
        let free = targets(None, |_| ()).expect("targets");
        let slack = "https://hooks.slack.com/services/T0/B0/hunter2";
        let fingerprint = free.shown(slack);
        assert!(fingerprint.starts_with("https://hooks.slack.com/<") && fingerprint.len() == 34, "{fingerprint}");
        assert_ne!(fingerprint, free.shown("https://hooks.slack.com/services/T0/B0/hunter3"));
        for (target, beginning) in [
            ("https://h.example", "https://h.example"),
            ("https://h.example/", "https://h.example"),
            ("https://h.example/?key=hunter2", "https://h.example/<"),
            ("https://u:hunter2@h.example/x", "https://h.example/<"),
            ("https://h.example/hunter2/{tenant_id}", "https://h.example/<"),
            ("https://u:hunter2@{tenant_id}.example/hunter2", "https://{tenant_id}.example/<"),
            ("{header:callback}", "{header:callback}"),
            ("{header:callback}/hunter2/{tenant_id}", "<"),
            ("h.example/hunter2", "<"),
        ] {
            let shown = free.shown(target);
            assert!(shown.starts_with(beginning) && !shown.contains("hunter2"), "{target}: {shown}");
        }
        let below = targets(Some("https://h.example/hunter2"), |_| ()).expect("targets");
        assert!(below.address().starts_with("https://h.example/<"), "{}", below.address());
        assert!(below.shown("T0/hunter2").starts_with("https://h.example/<"));
        assert_ne!(below.shown("a"), below.shown("b"));
        for target in ["hunter2/..", "hunter2", "//hunter2\\"] {
            for targets in [&below, &free] {
                let error = targets.url(target).err().map(|error| error.to_string()).unwrap_or_default();
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
        assert_eq!(
            (free.server("https://h.example:444/x").as_deref(), below.server("x")),
            (Some("https://h.example:444"), None)
        );
    }

    #[test]
    fn without_a_url_targets_are_absolute() {
        let targets = targets(None, |_| ()).expect("targets");
        assert!(targets.url("https://h.example/x?y#z").is_ok_and(|url| url.as_str() == "https://h.example/x?y"));
        let error = |target| targets.url(target).expect_err("refused").to_string();
        assert!(error("orders").contains("no absolute URL; write one, or set the option `url`"));
        assert!(error("https%3A%2F%2Fh.example").contains("is written `{+…}` in the template"));
        assert!(error("ftp://h.example/x").contains("scheme"));
        assert!(error("http://h.example/x").contains("`plaintext = true`"));
        for target in
            ["a/../x", "a/..", "./x", "a/%2E%2e/x", "..%2fx", "a\\..\\x", "a/.\n./x", "..;v=1/x", "../x?y", "a/.. "]
        {
            let refused = targets.url(&format!("https://h.example/{target}")).expect_err(target).to_string();
            assert!(refused.contains("a segment of dots"), "{target}: {refused}");
        }
        assert!(targets.url("https://h.example/a..b/...?y=/../#/../").is_ok());
        assert!(error("https://u:hunter2@h.example/x").contains("credentials"));
    }

    #[test]
    fn a_malformed_target_is_the_events_fault_and_a_forbidden_one_is_not() {
        use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Permanent};
        let below = targets(Some("https://h.example/in"), |_| ()).expect("targets");
        for (target, kind) in [
            ("", Permanent),
            ("  ", Permanent),
            ("../x", Permanent),
            ("a\nb", Permanent),
            ("https://", Permanent),
            ("https://h.example:99999/in", Permanent),
            ("https://other.example/", Misconfigured),
        ] {
            assert_eq!(below.url(target).expect_err(target).kind(), kind, "{target}");
        }
        let free = targets(None, |_| ()).expect("targets");
        for target in ["orders", "http://h.example/", "https://10.0.0.1/", "ftp://h.example/"] {
            assert_eq!(free.url(target).expect_err(target).kind(), Misconfigured, "{target}");
        }
    }

    #[test]
    fn literal_addresses_are_checked_however_they_are_written() {
        let open = targets(None, |o| o.plaintext = true).expect("targets");
        for host in [
            "127.0.0.1",
            "0x7f.1",
            "2130706433",
            "017700000001",
            "127.1",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:169.254.169.254]",
            "169.254.169.254",
            "10.0.0.1",
            "0",
        ] {
            assert!(
                open.url(&format!("http://{host}/x")).expect_err(host).to_string().contains("`allow_private = true`"),
                "{host}"
            );
        }
        assert!(open.url("http://8.8.8.8/x").is_ok());
        let allowed = targets(None, |o| o.allow_private = true).expect("targets");
        assert!(allowed.url("http://127.0.0.1:9/x").is_ok() && allowed.url("https://10.0.0.1/x").is_ok());
        assert!(allowed.url("http://10.0.0.1/x").expect_err("refused").to_string().contains("`plaintext = true`"));
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_at_once() {
        let error = |url, change: fn(&mut WebhookOptions)| targets(Some(url), change).expect_err("refused").to_string();
        assert!(error("h.example/x", |_| ()).contains("setting `url` is no URL"));
        assert!(error("mailto:a@b", |_| ()).contains("setting `url`"));
        assert!(error("ftp://h.example/", |_| ()).contains("not HTTP"));
        assert!(error("http://h.example/", |_| ()).contains("write `https://` for TLS, or set `plaintext = true`"));
        assert!(error("https://192.168.1.1/", |_| ()).contains("`allow_private = true`"));
        assert!(error("https://u:hunter2@h/", |o| o.token = Some("x".into())).contains("`token` contradicts the user"));
        assert!(targets(Some("http://h.example/"), |o| o.plaintext = true).is_ok());
    }
}
