//! The database that `--store` names.

use std::fmt;

/// The address of a database, by its kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// A file, by its path or as a URL, as the store understands it.
    Sqlite(String),
    /// A URL, as the store understands it.
    Postgres(String),
    /// A URL of MySQL or MariaDB, as the store understands it.
    Mysql(String),
}

/// Text that names no database. It is not quoted: it may hold a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--store {0}; write `sqlite://PATH`, `sqlite:PATH`, a file name that ends in .db, `postgres://USER@HOST/DATABASE`, or `mysql://USER@HOST/DATABASE`"
)]
pub struct UnknownAddress(String);

impl Address {
    /// Parses the value of `--store`.
    pub fn parse(text: &str) -> Result<Self, UnknownAddress> {
        let refuse = |problem: &str| Err(UnknownAddress(problem.to_owned()));
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            return match text {
                "" => refuse("is empty"),
                _ if has_database_ending(text) => Ok(Self::Sqlite(text.to_owned())),
                _ => refuse("names no database"),
            };
        };
        match scheme {
            "sqlite" if rest.trim_start_matches("//").is_empty() => refuse("names no file"),
            "sqlite" => Ok(Self::Sqlite(text.to_owned())),
            "postgres" | "postgresql" if rest.starts_with("//") => Ok(Self::Postgres(text.to_owned())),
            "mysql" | "mariadb" if rest.starts_with("//") => Ok(Self::Mysql(text.to_owned())),
            "postgres" | "postgresql" | "mysql" | "mariadb" => refuse("lacks `//` after the scheme"),
            other => Err(UnknownAddress(format!("names a kind of database that is not supported: `{other}`"))),
        }
    }
}

/// True for the scheme of a URL; a single letter is a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn has_database_ending(path: &str) -> bool {
    [".db", ".sqlite", ".sqlite3"].iter().any(|ending| path.ends_with(ending))
}

// A URL may hold a password, and `Debug` output ends up in logs.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => f.debug_tuple("Sqlite").field(file).finish(),
            Self::Postgres(_) => f.write_str("Postgres(…)"),
            Self::Mysql(_) => f.write_str("Mysql(…)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_is_read() {
        for text in ["sqlite://shop.db", "sqlite:///var/lib/shop", "sqlite:shop", "data/shop.db", "C:\\shop.db"] {
            assert_eq!(Address::parse(text), Ok(Address::Sqlite(text.to_owned())));
        }
        for text in ["postgres://u:p@h/d", "postgresql://h/d"] {
            assert_eq!(Address::parse(text), Ok(Address::Postgres(text.to_owned())));
        }
        for text in ["mysql://u:p@h/d", "mariadb://h/d"] {
            assert_eq!(Address::parse(text), Ok(Address::Mysql(text.to_owned())));
        }
    }

    #[test]
    fn other_text_is_refused_without_being_quoted() {
        for text in [
            "",
            "shop",
            "sqlite://",
            "postgres:h/secret",
            "mysql:h/secret",
            "oracle://u:secret@h/d",
            "u:secret@h/d",
            "secret",
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains("sqlite://PATH") && !error.contains("secret"), "{text}: {error}");
        }
    }
}
