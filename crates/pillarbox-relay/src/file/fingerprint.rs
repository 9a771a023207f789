use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use super::FileError;
use super::source::variables;

/// The end of the variable that names the file with the URL of a source's database.
const URL_FILE: &str = "STORE__URL_FILE";

/// The state of a configuration file on disk, without parsing it as one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileFingerprint {
    /// See [`digest`].
    pub(crate) digest: String,
    /// The files that it names, such as secrets, and those that variables name for its sources: the key or the variable of each, and the
    /// time at which it was last written, if it is there.
    ///
    /// Their contents are not part of it: a short password could be found by its digest.
    pub(crate) named: Vec<(String, Option<SystemTime>)>,
}

impl FileFingerprint {
    /// Reads the fingerprint of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        Self::read_with_env(path, |name| std::env::var(name).ok())
    }

    /// As [`read`](Self::read), with the values of these variables.
    fn read_with_env(path: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, FileError> {
        let text = read_text(path)?;
        let mut files = Vec::new();
        // One that is no TOML names none, and has another digest.
        if let Ok(table) = text.parse::<Table>() {
            add_files("", &table, &mut files);
            let sources = table.get("source").and_then(Value::as_array).into_iter().flatten();
            let names = sources.filter_map(|source| source.get("name")?.as_str());
            files.extend(names.filter_map(|name| {
                let name = format!("{}{URL_FILE}", variables(name));
                let path = variable(&name).filter(|path| !path.is_empty())?;
                Some((name, path.into()))
            }));
        }
        let written = |path: PathBuf| path.metadata().and_then(|file| file.modified()).ok();
        let named = files.into_iter().map(|(key, path)| (key, written(path))).collect();
        Ok(Self { digest: digest(&text), named })
    }

    /// The keys of the files that were written after a time.
    pub(crate) fn written_after(&self, time: SystemTime) -> Vec<String> {
        let later = self.named.iter().filter(|(_, written)| written.is_some_and(|written| written > time));
        later.map(|(key, _)| key.clone()).collect()
    }
}

/// Adds the files that the keys of a table name, at any depth.
fn add_files(of: &str, table: &Table, files: &mut Vec<(String, PathBuf)>) {
    for (key, value) in table {
        let key = if of.is_empty() { key.clone() } else { format!("{of}.{key}") };
        match value {
            // `password_file = "…"`, and `password = { file = "…" }`.
            Value::String(path) if ["_file", ".file"].iter().any(|end| key.ends_with(end)) => {
                files.push((key, path.into()));
            }
            Value::Table(table) => add_files(&key, table, files),
            Value::Array(items) => {
                for table in items.iter().filter_map(Value::as_table) {
                    add_files(&key, table, files);
                }
            }
            _ => {}
        }
    }
}

/// The text of a file.
pub(super) fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Unreadable { path: path.to_owned(), source })
}

/// The beginning of the text's SHA-256, in hexadecimal digits: enough to tell one text from another.
pub(super) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::clock::{Clock as _, SystemClock};

    use super::*;

    #[test]
    fn every_form_of_a_file_that_holds_a_secret_is_known() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("relay.toml");
        let text = "[publisher.mail]\npassword = { file = '/a' }\n[publisher.mail.headers]\nauthorization.file = '/b'\n\
                    [publisher.other]\ntoken = { env = 'T' }\n[[source]]\nname = 'shop-1'\n[[source]]\nname = 'stock'\n";
        std::fs::write(&path, text)?;
        let variable = |name: &str| match name {
            "PILLARBOX_SHOP_1_STORE__URL_FILE" => Some("/c".to_owned()),
            "PILLARBOX_STOCK_STORE__URL_FILE" => Some(String::new()),
            _ => None,
        };
        let keys: Vec<_> =
            FileFingerprint::read_with_env(&path, variable)?.named.into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            [
                "publisher.mail.headers.authorization.file",
                "publisher.mail.password.file",
                "PILLARBOX_SHOP_1_STORE__URL_FILE"
            ]
        );
        Ok(())
    }

    #[test]
    fn a_secret_that_was_written_later_is_told_by_its_key() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let of = |name: &str| folder.path().join(name);
        std::fs::write(of("url"), "postgres://app:old@db/shop")?;
        let text = format!(
            "[relay.console]\npassword_file = '/nowhere'\n[[source]]\nname = 'shop'\n[source.store]\nurl_file = '{}'\n",
            of("url").display()
        );
        std::fs::write(of("relay.toml"), &text)?;
        let now = SystemTime::from(SystemClock.now());
        let before = FileFingerprint::read(&of("relay.toml"))?;
        let keys: Vec<_> = before.named.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["relay.console.password_file", "source.store.url_file"]);
        let later = now + Duration::from_secs(60);
        assert_eq!(before.written_after(later), [""; 0]);
        std::fs::File::open(of("url"))?.set_modified(later + Duration::from_secs(1))?;
        let after = FileFingerprint::read(&of("relay.toml"))?;
        assert_eq!(after.written_after(later), ["source.store.url_file"]);
        assert_eq!(after.digest, before.digest, "it says nothing of a secret");
        std::fs::write(of("relay.toml"), "no = [TOML")?;
        let broken = FileFingerprint::read(&of("relay.toml"))?;
        assert!(broken.named.is_empty() && broken.digest != before.digest);
        Ok(())
    }
}
