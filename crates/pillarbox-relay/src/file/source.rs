//! A source of a file: a database, with the settings to deliver from it.

use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use pillarbox_config::{DatabaseUrl, InForce, Settings};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{Store, TableName, operation, refusal};
use pillarbox_engine::run::StartError;

/// A database to deliver from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    /// The URL of the database as it was when the file was read, if it could be.
    pub(super) url: Option<DatabaseUrl>,
    /// The contents of the files that this URL names; `None` for a file that could not be read.
    pub(super) certificates: Vec<Option<Vec<u8>>>,
}

/// The parameters of the URLs of databases that name files: certificates and keys, which are read once.
const CERTIFICATES: [&str; 6] = ["ssl-ca", "ssl-cert", "ssl-key", "sslcert", "sslkey", "sslrootcert"];

/// Reads the files that the URL of a database names.
pub(super) fn certificates(url: &DatabaseUrl) -> Vec<Option<Vec<u8>>> {
    let (_, parameters) = url.as_str().split_once('?').unwrap_or_default();
    let parameters = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
    let paths = parameters.filter(|(name, _)| CERTIFICATES.contains(name)).map(|(_, path)| path);
    paths.map(|path| std::fs::read(&*percent_decode_str(path).decode_utf8().ok()?).ok()).collect()
}

/// The part of a URL that names the place of the tables, without the login and the way to connect.
fn place(url: &str) -> &str {
    let (place, _) = url.split_once('?').unwrap_or((url, ""));
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    place.rsplit_once('@').map_or(place, |(_, place)| place)
}

impl Source {
    /// True if both say the same, what `store.url_file` and the certificates of the URL hold included. A certificate that cannot be read now, as
    /// while it is written, is that of before.
    pub(crate) fn is_same(&self, before: &Self) -> bool {
        self.name == before.name && self.has_same_url(before) && self.settings.is_same(&before.settings)
    }

    /// True if it connects as `before` did: certificates included.
    pub(crate) fn has_same_url(&self, before: &Self) -> bool {
        let mut certificates = self.certificates.iter().zip(&before.certificates);
        self.url == before.url && certificates.all(|(now, before)| now.is_none() || now == before)
    }

    /// True if both lead to the same tables, perhaps with another login or in another way.
    pub(crate) fn has_same_tables(&self, other: &Self) -> bool {
        let place = |source: &Self| source.url.as_ref().map(|url| place(url.as_str()).to_owned());
        let (own, others) = (&self.settings.store, &other.settings.store);
        place(self) == place(other) && own.table == others.table && own.table_prefix == others.table_prefix
    }

    /// The settings, for people.
    pub(crate) fn settings_in_force(&self) -> impl Iterator<Item = pillarbox_console::Setting> {
        self.settings.in_force().into_iter().map(|InForce { key, value, origin, .. }| pillarbox_console::Setting {
            key,
            value,
            origin: origin.map(|origin| origin.to_string()),
        })
    }

    /// The name of the event table.
    pub(crate) fn table(&self) -> String {
        let store = &self.settings.store;
        let name = TableName::parse(&store.table)
            .and_then(|name| name.prefixed(store.table_prefix.as_deref().unwrap_or_default()));
        name.map_or_else(|_| store.table.clone(), |name| name.to_string())
    }

    /// Opens the database, which has to be there: SQLite would create a file of any name.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, pillarbox_config::Error> {
        // If the folder cannot be searched, opening the file says so.
        let is_missing = |file: &PathBuf| !self.settings.store.migrate && !file.try_exists().unwrap_or(true);
        if let Some(file) = self.settings.sqlite_file()?.filter(is_missing) {
            // It may still be made: the file need not be wrong.
            let problem = format!(
                "`{}` does not exist; check `store.url`, which is relative to where the relay was started, or create the \
                 outbox with `{}`",
                file.display(),
                refusal::migrate(Some(&file.display().to_string()), &self.table())
            );
            let error = StoreError::new(StoreErrorKind::Unavailable, operation::CONNECT, problem);
            return Err(StartError::Store(error).into());
        }
        self.settings.connect().await
    }
}

/// The prefix of the variables of a source.
pub(super) fn variables(source: &str) -> String {
    format!("PILLARBOX_{}_", source.replace('-', "_").to_ascii_uppercase())
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]
mod tests {
    use super::super::RelayFile;
    use super::*;

    /// A certificate that is renewed in its place leaves the text of the URL as it was.
    #[test]
    fn a_place_is_a_url_without_the_user_and_parameters() {
        for (url, expected) in [
            ("postgres://u:p%40@h:5433/d?sslmode=require&x=a@b", "h:5433/d"),
            ("postgres://other@h:5433/d", "h:5433/d"),
            ("mysql://h/d", "h/d"),
            ("shop.db", "shop.db"),
        ] {
            assert_eq!(place(url), expected);
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_read_makes_no_other_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, own) = (folder.path().join("relay.toml"), folder.path().join("own.pem"));
        let url = format!("postgres://u@h/d?sslmode=verify-full&sslrootcert={}", own.display());
        let text =
            format!("[[source]]\nname = \"shop\"\nstore.url = \"{url}\"\n[[route]]\nname = \"all\"\ndrop = true\n");
        std::fs::write(&file, text).expect("writes");
        let source = |certificate: Option<&str>| {
            let _ = std::fs::remove_file(&own);
            certificate.inspect(|text| std::fs::write(&own, text).expect("writes"));
            RelayFile::read(&file).expect("is right").sources.remove(0)
        };
        let before = source(Some("first"));
        assert!(source(Some("first")).is_same(&before));
        assert!(source(None).is_same(&before), "it is being written");
        assert!(!source(Some("second")).is_same(&before));
    }

    #[test]
    fn a_source_is_another_one_once_a_certificate_of_its_url_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("a b.pem"), folder.path().join("other.pem"));
        let encoded = own.display().to_string().replace(' ', "%20");
        let url = DatabaseUrl::from(format!("postgres://u@h/d?sslmode=verify-full&sslrootcert={encoded}"));
        assert_eq!(certificates(&url), [None]);
        std::fs::write(&own, "first").expect("writes");
        std::fs::write(&other, "other").expect("writes");
        assert_eq!(certificates(&url), [Some(b"first".to_vec())]);
        std::fs::write(&own, "second").expect("writes");
        assert_eq!(certificates(&url), [Some(b"second".to_vec())]);
        let url =
            format!("mysql://u@h/d?ssl-mode=verify_identity&ssl-ca={}&ssl-cert=&socket={encoded}", other.display());
        assert_eq!(certificates(&url.into()), [Some(b"other".to_vec()), None]);
        assert!(certificates(&"shop.db".into()).is_empty());
    }
}
