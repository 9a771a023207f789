//! What is not shown.

use std::borrow::Cow;

/// The text in the place of a secret.
pub(crate) const MASK: &str = "••••••";

/// Parts of names, in lower case without `-` and `_`, whose values are secrets.
const SECRETS: [&str; 13] = [
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "cvv",
    "iban",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
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
