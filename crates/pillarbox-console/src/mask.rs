//! Hides payloads and other values that are not to be shown.

use std::borrow::Cow;

/// The text in the place of a secret.
pub(crate) const MASK: &str = "••••••";

/// Parts of names, in lower case without `-` and `_`, whose values are secrets.
const SECRETS: [&str; 17] = [
    "accesskey",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "cvv",
    "iban",
    "jwt",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "sessionid",
];

/// The ends of such names: what has more behind it is another thing, such as `tokens_used` and `author`.
const ENDS: [&str; 2] = ["auth", "token"];

/// The text of a form without its secrets, `name=value&name=value`; `None` if it is none.
pub(crate) fn form(text: &str) -> Option<String> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+%[]*".contains(c));
    let pairs = text.trim_end().split('&').map(|pair| pair.split_once('='));
    let pairs: Option<Vec<(&str, &str)>> = pairs.map(|pair| pair.filter(|(name, _)| is_name(name))).collect();
    let pairs = pairs?.into_iter().map(|(name, value)| format!("{name}={}", shown(name, value)));
    Some(pairs.collect::<Vec<_>>().join("&"))
}

/// An absolute URL without what opens it, as an incoming webhook's does: user and password, long parts of its path, and its query; `None` for
/// other text, and for a URL that has none of these.
pub(crate) fn url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !is_scheme || rest.contains(char::is_whitespace) {
        return None;
    }
    let (place, query) = match rest.split_once(['?', '#']) {
        Some((place, _)) => (place, format!("?{MASK}")),
        None => (rest, String::new()),
    };
    let mut segments = place.split('/');
    let authority = segments.next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("{MASK}@{host}"));
    let segments = segments.map(|segment| if may_open(segment) { MASK } else { segment });
    let masked = std::iter::once(authority.as_str()).chain(segments).collect::<Vec<_>>().join("/");
    Some(format!("{scheme}://{masked}{query}")).filter(|masked| masked != text)
}

/// True for a part of a path that is long and has letters and digits, as tokens do.
fn may_open(segment: &str) -> bool {
    let has = |is: fn(&char) -> bool| segment.chars().any(|c| is(&c));
    segment.len() >= 16 && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

/// True if what has this name is a secret: a header, a setting, or a member of a payload.
pub(crate) fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(|c| !"-_. ".contains(*c)).flat_map(char::to_lowercase).collect();
    SECRETS.iter().any(|secret| name.contains(secret)) || ENDS.iter().any(|end| name.ends_with(end))
}

/// The value, or the mask if its name says that it is a secret.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) { Cow::Borrowed(MASK) } else { Cow::Borrowed(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_hides_its_secrets() {
        let masked = |text: &str| form(text);
        assert_eq!(masked("user=ada&password=s3cret&next=%2F"), Some(format!("user=ada&password={MASK}&next=%2F")));
        for text in ["plain words", "a = b", "", "x=1&y", "<a href=\"x\">"] {
            assert_eq!(masked(text), None, "{text}");
        }
    }

    #[test]
    fn a_url_hides_what_opens_it() {
        let hook = "https://hooks.slack.com/services/T0/B0/abcdefgh12345678XYZ";
        assert_eq!(url(hook), Some(format!("https://hooks.slack.com/services/T0/B0/{MASK}")));
        assert_eq!(url("https://u:p@h.example/x?k=1#y"), Some(format!("https://{MASK}@h.example/x?{MASK}")));
        for text in ["https://shop.example/orders/2026", "urn:x:y", "plain words", "see https://u:p@h/ there", "://x"] {
            assert_eq!(url(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "Authorization",
            "x-auth",
            "user.pwd",
            "id_jwt",
            "x-api-key",
            "API_KEY",
            "set-cookie",
            "userPassword",
            "access_token",
            "client-secret",
        ] {
            assert_eq!(shown(name, "s3cret"), MASK, "{name}");
        }
        for name in ["traceparent", "tokens_used", "key", "author", "content-type"] {
            assert_eq!(shown(name, "text"), "text", "{name}");
        }
    }
}
