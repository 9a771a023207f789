use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// The URL of a database. It may hold a password, so neither `Debug` nor `Serialize` shows more than its kind.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

/// The kind of database that a URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Postgres,
    Mysql,
    Sqlite,
}

impl DatabaseKind {
    /// Its name, for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// The feature that brings it.
    #[cfg(not(all(feature = "mysql", feature = "postgres", feature = "sqlite")))]
    pub(crate) const fn feature(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Sqlite => "sqlite",
        }
    }
}

const FORMS: &str = "write `postgres://USER@HOST/DATABASE`, `mysql://USER@HOST/DATABASE`, `sqlite://PATH`, or a path that ends in `.db`";

impl DatabaseUrl {
    /// The URL, password included: for a pool of the program's own on the same database.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind of database that it names; otherwise the problem and the remedy.
    pub(crate) fn kind(&self) -> Result<DatabaseKind, (&'static str, &'static str)> {
        let url = &*self.0;
        let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            return match url {
                "" => Err(("is empty", FORMS)),
                path if [".db", ".sqlite", ".sqlite3"].iter().any(|ending| path.ends_with(ending)) => {
                    Ok(DatabaseKind::Sqlite)
                }
                _ => Err(("names no database", FORMS)),
            };
        };
        match scheme {
            "postgres" | "postgresql" if rest.starts_with("//") => Ok(DatabaseKind::Postgres),
            "mysql" | "mariadb" if rest.starts_with("//") => Ok(DatabaseKind::Mysql),
            "postgres" | "postgresql" | "mysql" | "mariadb" => Err(("lacks `//` after its scheme", FORMS)),
            "sqlite" if rest.trim_start_matches("//").is_empty() => Err(("names no file", FORMS)),
            "sqlite" => Ok(DatabaseKind::Sqlite),
            "jdbc" => Err(("is a URL of JDBC", "leave out `jdbc:`, and write `USER:PASSWORD@` before the host")),
            _ => Err(("names a kind of database that is not supported", FORMS)),
        }
    }
}

/// One letter is a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.chars().all(|c| c.is_ascii_alphanumeric())
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// Shows only the part of a URL that is no secret.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Ok(kind) => write!(f, "{} (hidden)", kind.name()),
            Err(_) => f.write_str("(hidden)"),
        }
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{self:?}"))
    }
}
