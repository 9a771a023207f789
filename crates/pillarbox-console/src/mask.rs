//! What is not shown.

use std::borrow::Cow;

/// The text in the place of a secret.
pub(crate) const MASK: &str = "••••••";

/// Parts of names, in lower case without `-` and `_`, whose values are secrets.
const SECRETS: [&str; 11] = [
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "cvv",
    "iban",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
];

/// True if what has this name is a secret: a header, a setting, or a member of a payload.
pub(crate) fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(|c| !"-_. ".contains(*c)).flat_map(char::to_lowercase).collect();
    SECRETS.iter().any(|secret| name.contains(secret)) || name.ends_with("token")
}

/// The value, or the mask if its name says that it is a secret.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) { Cow::Borrowed(MASK) } else { Cow::Borrowed(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in
            ["Authorization", "x-api-key", "API_KEY", "set-cookie", "userPassword", "access_token", "client-secret"]
        {
            assert_eq!(shown(name, "s3cret"), MASK, "{name}");
        }
        for name in ["traceparent", "tokens_used", "key", "author", "content-type"] {
            assert_eq!(shown(name, "text"), "text", "{name}");
        }
    }
}
