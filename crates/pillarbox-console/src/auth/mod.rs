//! Access to the console: to see it, and to change something.

mod accounts;
mod guard;
mod host;
mod login;
mod sessions;

use std::fmt;
use std::sync::Arc;

use accounts::AccountsInForce;
use axum::http::request::Parts;

pub use accounts::{AccessError, Accounts};
pub(crate) use guard::{Caller, guard};
pub(crate) use login::{log_in, log_out, show_login, to_first_page};
pub(crate) use sessions::Sessions;

/// The rights of a user. A later one has those of the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Looks at everything, and changes nothing.
    Read,
    /// Replays, discards, cancels and tries events again, too.
    Operate,
}

impl Role {
    /// The role's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

/// A user of the console. The name stands in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct User {
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl User {
    /// Characters of a name that are kept.
    const NAME: usize = 100;

    /// A user with this name, of which the first 100 characters are kept.
    #[must_use]
    pub fn new(name: impl AsRef<str>, role: Role) -> Self {
        Self { name: name.as_ref().chars().take(Self::NAME).collect(), role }
    }
}

/// The rule by which the console tells its users.
#[derive(Clone)]
pub struct Access(pub(crate) Rule);

/// The user of a request, if the service knows it.
type Decision = dyn Fn(&Parts) -> Option<User> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Rule {
    /// Everybody on this host.
    Loopback(Role),
    /// Everybody who knows the password of an account.
    Accounts(Arc<AccountsInForce>),
    /// The service around the console.
    Service(Arc<Decision>),
}

impl Access {
    /// Everybody on this host, without a password. For a listener on a loopback address: requests that name another host are
    /// refused, so that no page of another site reaches the console through a browser.
    #[must_use]
    pub fn loopback(role: Role) -> Self {
        Self(Rule::Loopback(role))
    }

    /// Users who log in to one of these accounts, or send its password as a bearer token.
    #[must_use]
    pub fn accounts(accounts: Accounts) -> Self {
        Self(Rule::Accounts(Arc::new(AccountsInForce::new(accounts))))
    }

    /// Puts these accounts in the place of those that [`accounts`](Self::accounts) was given, in every console that has a clone of this
    /// access. Sessions end whose account is gone, or has another password or role; the others go on. An access that is not by accounts
    /// stays as it is.
    pub fn replace_accounts(&self, accounts: Accounts) {
        if let Rule::Accounts(in_force) = &self.0 {
            in_force.replace(accounts);
        }
    }

    /// The service around the console decides, by what its own layers have put into the request. `None` refuses.
    #[must_use]
    pub fn decided_by(user: impl Fn(&Parts) -> Option<User> + Send + Sync + 'static) -> Self {
        Self(Rule::Service(Arc::new(user)))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match &self.0 {
            Rule::Loopback(role) => return f.debug_tuple("Loopback").field(role).finish(),
            Rule::Accounts(accounts) => return f.debug_tuple("Accounts").field(accounts).finish(),
            Rule::Service(_) => "Service(…)",
        };
        f.write_str(rule)
    }
}
