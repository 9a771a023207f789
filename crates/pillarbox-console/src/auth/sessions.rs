use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::lock::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::accounts::Account;

/// The name of the cookie.
pub(crate) const COOKIE: &str = "pillarbox_console";
/// The longest time of a session.
pub(crate) const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// Sessions at once; the one that ends first makes room.
const MOST: usize = 1_000;
/// Failed logins from one place that are answered within a [minute](MINUTE); further ones are refused unseen.
const FAILURES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Places whose failed logins are counted each for itself; further ones count as one place.
const PLACES: usize = 10_000;

/// The sessions, in the memory of this process: a restart logs everybody out.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
    failed: Mutex<HashMap<Option<IpAddr>, Vec<Instant>>>,
}

/// The end of a login.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Login<T> {
    Known(T),
    Wrong,
    /// Too many have failed from there: it was not looked at. The next one will be after this time.
    Refused(Duration),
}

#[derive(Debug)]
struct Session {
    account: Arc<Account>,
    ends: Instant,
}

impl Sessions {
    /// Opens a session, and returns the secret that its cookie holds. The secret itself is not kept.
    pub(crate) fn open(&self, account: Arc<Account>) -> String {
        let mut secret = String::with_capacity(64);
        for byte in rand::random::<[u8; 32]>() {
            // Text takes all that is written to it.
            let _ = write!(secret, "{byte:02x}");
        }
        let mut open = self.open.lock();
        let now = Instant::now();
        open.retain(|_, session| session.ends > now);
        if open.len() >= MOST
            && let Some(first) = open.iter().min_by_key(|(_, session)| session.ends).map(|(key, _)| *key)
        {
            open.remove(&first);
        }
        open.insert(hash(&secret), Session { account, ends: now + LONGEST });
        secret
    }

    /// The account that a session was opened for.
    pub(crate) fn account(&self, secret: &str) -> Option<Arc<Account>> {
        let open = self.open.lock();
        let session = open.get(&hash(secret)).filter(|session| session.ends > Instant::now())?;
        Some(Arc::clone(&session.account))
    }

    pub(crate) fn close(&self, secret: &str) {
        self.open.lock().remove(&hash(secret));
    }

    /// Looks for a user, unless too many logins from there have failed within a minute. `from` is the client's address, as far as it is
    /// known, so that a client that guesses locks no other out. One login is looked at after the other, so that a burst is counted too.
    pub(crate) fn log_in<T>(&self, from: Option<IpAddr>, find: impl FnOnce() -> Option<T>) -> Login<T> {
        let (mut failed, now) = (self.failed.lock(), Instant::now());
        failed.retain(|_, times| {
            times.retain(|at| now.saturating_duration_since(*at) < MINUTE);
            !times.is_empty()
        });
        let place = from.map(network).filter(|place| failed.len() < PLACES || failed.contains_key(&Some(*place)));
        if let Some(times) = failed.get(&place).filter(|times| times.len() >= FAILURES) {
            let first = times.first().copied().unwrap_or(now);
            return Login::Refused((first + MINUTE).saturating_duration_since(now));
        }
        match find() {
            Some(user) => Login::Known(user),
            None => {
                failed.entry(place).or_default().push(now);
                Login::Wrong
            }
        }
    }
}

/// The network that one client has to itself: of IPv6 it may take any of 2^64 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accounts, Role};

    fn account() -> Arc<Account> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "correct-horse-battery").expect("writes");
        let accounts = Accounts::new().password_file(file.path(), Role::Read).expect("a password");
        Arc::clone(accounts.find(None, "correct-horse-battery").expect("an account"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_by_logging_out_and_by_its_time() {
        let sessions = Sessions::default();
        let ada = account();
        let (first, second) = (sessions.open(Arc::clone(&ada)), sessions.open(Arc::clone(&ada)));
        assert_ne!(first, second);
        let of = |secret: &str| sessions.account(secret);
        assert_eq!([&*first, "", "0"].map(of), [Some(Arc::clone(&ada)), None, None]);
        sessions.close(&first);
        assert_eq!([&*first, &*second].map(of), [None, Some(ada)]);
        tokio::time::advance(LONGEST).await;
        assert_eq!(of(&second), None);
    }

    #[test]
    fn sessions_are_bounded() {
        let sessions = Sessions::default();
        let ada = account();
        for _ in 0..=MOST {
            sessions.open(Arc::clone(&ada));
        }
        assert_eq!(sessions.open.lock().len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_is_slowed_down_where_it_comes_from() {
        let sessions = Sessions::default();
        let [eve, eve_again, ada] =
            ["2001:db8::1", "2001:db8::2", "10.0.0.7"].map(|address| address.parse::<IpAddr>().ok());
        for attempt in 0..FAILURES {
            let from = if attempt % 2 == 0 { eve } else { eve_again };
            assert_eq!(sessions.log_in(from, || None::<u8>), Login::Wrong);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let never = || -> Option<u8> { panic!("it is not looked at") };
        assert_eq!(sessions.log_in(eve, never), Login::Refused(Duration::from_secs(50)));
        assert_eq!(sessions.log_in(ada, || Some(1)), Login::Known(1));
        assert_eq!(sessions.log_in(None, || Some(1)), Login::Known(1));
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(sessions.log_in(eve, || Some(1)), Login::Known(1));
    }

    #[test]
    fn places_are_bounded() {
        let sessions = Sessions::default();
        // A few more than there are places: it has to end long before the first may be forgotten, on a busy machine as well.
        for number in 0..10_100_u32 {
            sessions.log_in(Some(std::net::Ipv4Addr::from_bits(number).into()), || None::<u8>);
        }
        assert_eq!(sessions.failed.lock().len(), PLACES + 1);
    }
}
