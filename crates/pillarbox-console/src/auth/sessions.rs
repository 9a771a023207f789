use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use pillarbox_core::lock::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::User;

/// The name of the cookie.
pub(crate) const COOKIE: &str = "pillarbox_console";
/// The longest time of a session.
pub(crate) const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// Sessions at once; the one that ends first makes room.
const MOST: usize = 1_000;
/// Failed logins that are answered within a [minute](MINUTE); further ones are refused unseen.
const FAILURES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The sessions, in the memory of this process: a restart logs everybody out.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
    failed: Mutex<Vec<Instant>>,
}

#[derive(Debug)]
struct Session {
    user: User,
    ends: Instant,
}

impl Sessions {
    /// Opens a session, and returns the secret that its cookie holds. The secret itself is not kept.
    pub(crate) fn open(&self, user: User) -> String {
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
        open.insert(hash(&secret), Session { user, ends: now + LONGEST });
        secret
    }

    pub(crate) fn user(&self, secret: &str) -> Option<User> {
        let open = self.open.lock();
        open.get(&hash(secret)).filter(|session| session.ends > Instant::now()).map(|session| session.user.clone())
    }

    pub(crate) fn close(&self, secret: &str) {
        self.open.lock().remove(&hash(secret));
    }

    /// False once too many logins have failed within a minute.
    pub(crate) fn may_try(&self) -> bool {
        let mut failed = self.failed.lock();
        failed.retain(|at| at.elapsed() < MINUTE);
        failed.len() < FAILURES
    }

    pub(crate) fn has_failed(&self) {
        self.failed.lock().push(Instant::now());
    }
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_by_logging_out_and_by_its_time() {
        let sessions = Sessions::default();
        let ada = User::new("ada", Role::Read);
        let (first, second) = (sessions.open(ada.clone()), sessions.open(ada.clone()));
        assert_ne!(first, second);
        assert_eq!([&*first, "", "0"].map(|secret| sessions.user(secret)), [Some(ada.clone()), None, None]);
        sessions.close(&first);
        assert_eq!([&first, &second].map(|secret| sessions.user(secret)), [None, Some(ada)]);
        tokio::time::advance(LONGEST).await;
        assert_eq!(sessions.user(&second), None);
    }

    #[test]
    fn sessions_are_bounded() {
        let sessions = Sessions::default();
        for _ in 0..=MOST {
            sessions.open(User::new("ada", Role::Read));
        }
        assert_eq!(sessions.open.lock().len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_is_slowed_down() {
        let sessions = Sessions::default();
        for _ in 0..FAILURES {
            assert!(sessions.may_try());
            sessions.has_failed();
        }
        assert!(!sessions.may_try());
        tokio::time::advance(MINUTE).await;
        assert!(sessions.may_try());
    }
}
