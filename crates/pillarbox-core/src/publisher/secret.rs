use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};

/// Text that is never shown: a password, a token, a URL that may hold either.
///
/// In a configuration file it is written as text, or, better, as where to find it: `{ env = "NATS_TOKEN" }` or
/// `{ file = "/run/secrets/nats-token" }`, of which a line end at the end is no part.
///
/// ```
/// use pillarbox_core::publisher::Secret;
///
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "(hidden)");
/// assert_eq!(secret.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Reveals it, for code that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// The source of a secret in a configuration. Read by hand and not `untagged`, since that shows the text in its errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    env: Option<String>,
    file: Option<PathBuf>,
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, { env = \"NAME\" } or { file = \"PATH\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
                filled(text, "it is empty").map_err(E::custom)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Secret, A::Error> {
                let source = Source::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                find(source).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Longest secret, in bytes: a file that has no end is a mistake.
const LONGEST: u64 = 64 * 1024;

fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(std::io::Error::other(format!("it holds more than {LONGEST} bytes, which no secret has")));
    }
    Ok(text)
}

/// An empty secret is a mistake: a variable that was not filled in, a file that was not written.
fn filled(text: &str, problem: &str) -> Result<Secret, String> {
    if text.is_empty() {
        return Err(format!("{problem}; give the secret, or leave it out"));
    }
    Ok(Secret::new(text))
}

fn find(source: Source) -> Result<Secret, String> {
    match source {
        Source { env: Some(name), file: None } => {
            let text = std::env::var(&name)
                .map_err(|_| format!("the environment variable {name} is not set, or is not text; set it"))?;
            filled(&text, &format!("the environment variable {name} is empty"))
        }
        Source { env: None, file: Some(path) } => {
            let shown = path.display();
            let text = read_file(&path).map_err(|error| format!("the file {shown} cannot be read: {error}"))?;
            let text = text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
            filled(text, &format!("the file {shown} is empty"))
        }
        _ => Err("a secret is text, { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Secret, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_read_as_text_or_from_where_it_is() {
        let folder = std::env::temp_dir().join(format!("pillarbox-secret-{}", std::process::id()));
        std::fs::write(&folder, "from a file\r\n").expect("writes");
        let path = folder.display();
        assert_eq!(read("\"plain\"").as_ref().map(Secret::expose), Ok("plain"));
        assert_eq!(read(&format!("{{\"file\":\"{path}\"}}")).as_ref().map(Secret::expose), Ok("from a file"));
        std::fs::remove_file(&folder).expect("removes");
        assert!(
            read("{\"env\":\"CARGO_MANIFEST_DIR\"}").is_ok_and(|secret| secret.expose().ends_with("pillarbox-core"))
        );
    }

    #[test]
    fn missing_secrets_name_their_source_and_nothing_else() {
        let error = |json| read(json).expect_err("refused");
        assert!(error("{\"env\":\"PILLARBOX_NO_SUCH\"}").contains("PILLARBOX_NO_SUCH is not set"));
        assert!(error("\"\"").contains("it is empty; give the secret, or leave it out"));
        #[cfg(unix)]
        assert!(error("{\"file\":\"/dev/null\"}").contains("the file /dev/null is empty"));
        assert!(error("{\"file\":\"/no/such\"}").contains("/no/such cannot be read"));
        #[cfg(unix)]
        assert!(error("{\"file\":\"/dev/zero\"}").contains("more than 65536 bytes"));
        assert!(error("{\"env\":\"A\",\"file\":\"B\"}").contains("a secret is text"));
        assert!(!error("{\"password\":\"hunter2\"}").contains("hunter2"));
        assert!(!error("[\"hunter2\"]").contains("hunter2"));
    }
}
