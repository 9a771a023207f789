use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use pillarbox_core::error::ConfigError;
use sqlx::sqlite::SqliteConnectOptions;

/// Reads a path, or a URL of the forms `sqlite:shop.db` and `sqlite:///var/lib/shop.db`, as the path of the file.
pub(crate) fn file(location: &str) -> Result<PathBuf, ConfigError> {
    let Some(name) = location.strip_prefix("sqlite:") else { return named(location) };
    let name = name.strip_prefix("//").unwrap_or(name);
    let (name, parameters) = name.split_once('?').unwrap_or((name, ""));
    match parameters {
        // The file is created if it is missing, which is all that `mode=rwc` says.
        "" | "mode=rw" | "mode=rwc" => {}
        "mode=memory" => return Err(in_memory()),
        // Their values may be secret, such as a key, and so may a text that is not the form of a parameter.
        other => {
            let names = other.split('&').filter_map(|parameter| Some(parameter.split_once('=')?.0));
            let names: Vec<_> = names.filter(|name| is_plain(name)).map(|name| format!("`{name}`")).collect();
            let problem = match names.is_empty() {
                true => "has parameters".to_owned(),
                false => format!("has the parameters {}", names.join(", ")),
            };
            return Err(ConfigError::new("url", problem, "leave them out and use SqliteOptions instead"));
        }
    }
    named(name)?;
    // sqlx decodes what is percent-encoded, so that the same URL names the same file to the service and to the store.
    let options = SqliteConnectOptions::from_str(location)
        .map_err(|_| ConfigError::new("url", "is not percent-encoded UTF-8", "write it like `sqlite://shop.db`"))?;
    Ok(options.get_filename().to_owned())
}

fn named(name: &str) -> Result<PathBuf, ConfigError> {
    // SQLite takes names that start with `file:` for URIs with options of their own.
    if name == ":memory:" || name.starts_with("file:") && name.contains("memory") {
        return Err(in_memory());
    }
    if name.is_empty() {
        return Err(ConfigError::new("path", "is empty", "name the database file, such as `shop.db`"));
    }
    if name.starts_with("file:") || name.contains("://") {
        let problem = "is a URL of another kind";
        return Err(ConfigError::new("path", problem, "write it as a path, or like `sqlite://shop.db`"));
    }
    if name.contains('\0') {
        return Err(ConfigError::new("path", "contains a NUL character", "name the database file, such as `shop.db`"));
    }
    Ok(Path::new(name).to_owned())
}

/// True if a text looks like the name of a parameter.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn in_memory() -> ConfigError {
    ConfigError::new(
        "path",
        "asks for an in-memory SQLite database, of which every connection would see another one",
        "name a file, or use the in-memory store, `MemoryStore`",
    )
}

#[cfg(test)]
mod tests {
    use super::file;

    #[test]
    fn paths_and_urls_name_the_same_file() {
        for location in ["a/shop.db", "sqlite:a/shop.db", "sqlite://a/shop.db", "sqlite://a/shop.db?mode=rwc"] {
            assert_eq!(file(location).expect("a file").to_str(), Some("a/shop.db"), "{location}");
        }
        assert_eq!(file("sqlite:///a%20b.db").expect("a file").to_str(), Some("/a b.db"));
        assert_eq!(file("a%20b?.db").expect("a file").to_str(), Some("a%20b?.db"));
    }

    #[test]
    fn locations_that_name_no_file_are_refused() {
        let memory = [":memory:", "sqlite::memory:", "sqlite://:memory:", "sqlite://x?mode=memory", "file::memory:"];
        for location in memory {
            let error = file(location).expect_err(location);
            assert!(error.to_string().contains("in-memory store"), "{error}");
        }
        for location in [
            "",
            "sqlite:",
            "sqlite://",
            "file:x.db",
            "postgres://u:secret@h/d",
            "sqlite://x?cache=shared",
            "sqlite://x?key=secret",
            "sqlite://x?mode=rwc&key=secret",
            "sqlite://x?secret",
            "sqlite://x?%secret=1",
        ] {
            let error = file(location).expect_err(location);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let error = file("sqlite://x?cache=shared&key=secret").expect_err("refused").to_string();
        assert!(error.contains("has the parameters `cache`, `key`; leave them out"), "{error}");
    }
}
