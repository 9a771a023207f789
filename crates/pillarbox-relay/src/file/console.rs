use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use pillarbox_console::{Access, AccessError, Accounts, Console, Role};
use serde::{Deserialize, Deserializer};

use super::server::some_address;

/// The port at which it is served by default.
const PORT: u16 = 9465;

/// Section `[relay.console]`: the console and its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleSettings {
    /// The address at which it is served: `IP:PORT`. Default `127.0.0.1:9465`.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// A file that holds the password, or token, of operators.
    pub password_file: Option<PathBuf>,
    /// A file that holds the password of users that only read.
    pub read_password_file: Option<PathBuf>,
    /// A file with a line `NAME:ROLE:PASSWORD` for each user.
    pub users_file: Option<PathBuf>,
    /// Lets nobody change anything. Default `false`.
    pub read_only: bool,
    /// Shows no payload, but its size and type. Default `false`.
    pub mask_payloads: bool,
    /// The address of an event's trace, with `{trace_id}` in it.
    pub trace_link: Option<String>,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            password_file: None,
            read_password_file: None,
            users_file: None,
            read_only: false,
            mask_payloads: false,
            trace_link: None,
        }
    }
}

/// Reads `IP:PORT`.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    some_address(deserializer, PORT)
}

/// A console that may not be served so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// Other hosts would reach it, and nobody is asked for a password.
    #[error(
        "the console would be open to other hosts at {0}, without a password; give it a password file or a users file, or listen \
         on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// A file of passwords cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The link to traces has no place for the trace.
    #[error(
        "the link to traces is no address with `{{trace_id}}` in it; write such as `https://traces.example/trace/{{trace_id}}`"
    )]
    TraceLink,
}

impl ConsoleSettings {
    /// The rule by which the console tells its users: by passwords if there are any, else everybody on this host.
    ///
    /// # Errors
    /// When other hosts reach it without a password, a file cannot be used, or the link to traces is none.
    pub fn access(&self) -> Result<Access, ConsoleError> {
        self.access_by(self.accounts()?)
    }

    /// The accounts of the files of passwords, as they are now; `None` if none is named.
    pub(crate) fn accounts(&self) -> Result<Option<Accounts>, AccessError> {
        let Self { password_file, read_password_file, users_file, .. } = self;
        if [password_file, read_password_file, users_file].into_iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut accounts = Accounts::new();
        for (file, role) in [(password_file, Role::Operate), (read_password_file, Role::Read)] {
            if let Some(file) = file {
                accounts = accounts.password_file(file, role)?;
            }
        }
        if let Some(file) = users_file {
            accounts = accounts.users_file(file)?;
        }
        Ok(Some(accounts))
    }

    /// As [`access`](Self::access), by accounts that were read before.
    pub(crate) fn access_by(&self, accounts: Option<Accounts>) -> Result<Access, ConsoleError> {
        let is_link = |link: &String| {
            link.contains("{trace_id}") && (link.starts_with("https://") || link.starts_with("http://"))
        };
        if !self.trace_link.as_ref().is_none_or(is_link) {
            return Err(ConsoleError::TraceLink);
        }
        match accounts {
            Some(accounts) => Ok(Access::accounts(accounts)),
            None if self.listen.ip().is_loopback() => Ok(Access::loopback(Role::Operate)),
            None => Err(ConsoleError::Open(self.listen)),
        }
    }

    /// The console with these settings.
    #[must_use]
    pub fn console(&self, console: Console) -> Console {
        let console = console.read_only(self.read_only).mask_payloads(self.mask_payloads);
        match &self.trace_link {
            Some(link) => console.trace_link(link),
            None => console,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_console_is_open_to_other_hosts() {
        let mut settings = ConsoleSettings::default();
        assert_eq!(format!("{:?}", settings.access().expect("loopback")), "Loopback(Operate)");
        settings.listen = "0.0.0.0:9465".parse().expect("an address");
        let error = settings.access().expect_err("it is open").to_string();
        assert!(error.contains("open to other hosts at 0.0.0.0:9465"), "{error}");
        settings.password_file = Some("/nowhere/password".into());
        let error = settings.access().expect_err("no file").to_string();
        assert!(error.contains("`/nowhere/password` cannot be read"), "{error}");
    }

    #[test]
    fn a_link_without_a_place_for_the_trace_is_refused() {
        for link in ["https://traces.example/", "javascript:{trace_id}"] {
            let settings = ConsoleSettings { trace_link: Some(link.to_owned()), ..ConsoleSettings::default() };
            assert!(settings.access().is_err_and(|error| error.to_string().contains("{trace_id}")), "{link}");
        }
    }
}
