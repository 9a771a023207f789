use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pillarbox_core::lock::Mutex;
use sha2::{Digest as _, Sha256};

use super::{Role, User};

/// Characters that a password has at least.
const SHORTEST: usize = 12;
/// Bytes of a file that are read.
const LARGEST: usize = 64 * 1024;

/// Users and their passwords, as files name them. Only hashes are kept.
#[derive(Clone, Default)]
pub struct Accounts(Vec<Arc<Account>>);

/// A user with a password. A session belongs to the very account that it was opened for, and not to an equal one.
#[derive(PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) user: User,
    /// A hash of it.
    password: [u8; 32],
}

/// The accounts in force, which may be replaced while consoles are served.
#[derive(Default)]
pub(crate) struct AccountsInForce(Mutex<Arc<Accounts>>);

/// A file of passwords that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The file cannot be read.
    #[error("`{}` cannot be read: {source}; name a file that this process may read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("`{}`{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1, if it is about one.
        line: Option<usize>,
        /// The problem and the remedy.
        problem: &'static str,
    },
}

impl Accounts {
    /// No account yet: nobody gets in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an account whose password, or token, is all that a file holds, without the white space around it. Its user is named
    /// after the role.
    ///
    /// # Errors
    /// When the file cannot be read, or holds fewer than 12 characters.
    pub fn password_file(mut self, path: &Path, role: Role) -> Result<Self, AccessError> {
        let text = read(path)?;
        let password = text.trim();
        if password.lines().count() > 1 {
            return Err(malformed(path, None, "the file has more than one line; keep the password alone in it"));
        }
        if password.chars().count() < SHORTEST {
            return Err(malformed(path, None, TOO_SHORT));
        }
        self.0.push(Arc::new(Account { user: User::new(role.name(), role), password: hash(password) }));
        Ok(self)
    }

    /// Adds the accounts of a file with a line for each: `NAME:ROLE:PASSWORD`, where the role is `read` or `operate`. Empty lines, and
    /// those that begin with `#`, are passed over.
    ///
    /// # Errors
    /// When the file cannot be read, holds no account, or a line of another form.
    pub fn users_file(mut self, path: &Path) -> Result<Self, AccessError> {
        let text = read(path)?;
        let before = self.0.len();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let account = account(line).map_err(|problem| malformed(path, Some(number), problem))?;
            if self.0.iter().any(|other| other.user.name == account.user.name) {
                return Err(malformed(
                    path,
                    Some(number),
                    "the name stands there twice; give each user a name of its own",
                ));
            }
            self.0.push(Arc::new(account));
        }
        if self.0.len() == before {
            return Err(malformed(path, None, "it names no user; write a line `NAME:ROLE:PASSWORD` for each"));
        }
        Ok(self)
    }

    /// The account that has this name, if one is given, and this password.
    pub(crate) fn find(&self, name: Option<&str>, password: &str) -> Option<&Arc<Account>> {
        let given = hash(password);
        // Each is compared, whichever it is: hashes of what was given tell nothing by their time.
        let mut found = None;
        for account in &self.0 {
            if account.password == given && name.is_none_or(|name| name == account.user.name) {
                found = Some(account);
            }
        }
        found
    }

    /// True if this very account is among them.
    pub(crate) fn have(&self, account: &Arc<Account>) -> bool {
        self.0.iter().any(|other| Arc::ptr_eq(other, account))
    }

    /// True if users log in by a name: there are several accounts.
    pub(crate) fn have_names(&self) -> bool {
        self.0.len() > 1
    }

    /// These accounts, where those that `before` has as well, with the same role and password, are the very accounts of `before`.
    fn after(self, before: &Self) -> Self {
        let same = |account: Arc<Account>| before.0.iter().find(|other| **other == account).cloned().unwrap_or(account);
        Self(self.0.into_iter().map(same).collect())
    }
}

impl AccountsInForce {
    pub(crate) fn new(accounts: Accounts) -> Self {
        Self(Mutex::new(Arc::new(accounts)))
    }

    /// The accounts as they are now.
    pub(crate) fn now(&self) -> Arc<Accounts> {
        Arc::clone(&self.0.lock())
    }

    /// Puts others in their place. An account that says what it said keeps its sessions.
    pub(crate) fn replace(&self, accounts: Accounts) {
        let mut now = self.0.lock();
        *now = Arc::new(accounts.after(&now));
    }
}

impl fmt::Debug for AccountsInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now().fmt(f)
    }
}

/// Without the hash of the password.
impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.user.fmt(f)
    }
}

const TOO_SHORT: &str =
    "the password has fewer than 12 characters; take a longer one, such as of `openssl rand -hex 24`";

fn account(line: &str) -> Result<Account, &'static str> {
    const FORM: &str = "it is not of the form `NAME:ROLE:PASSWORD`; write such as `ada:operate:…`";
    let mut parts = line.splitn(3, ':').map(str::trim);
    let (name, role, password) =
        parts.next().zip(parts.next()).zip(parts.next()).map(|((n, r), p)| (n, r, p)).ok_or(FORM)?;
    let role = match role {
        "read" => Role::Read,
        "operate" => Role::Operate,
        _ => return Err("the role is none of `read` and `operate`"),
    };
    if name.is_empty() {
        return Err(FORM);
    }
    if password.chars().count() < SHORTEST {
        return Err(TOO_SHORT);
    }
    Ok(Account { user: User::new(name, role), password: hash(password) })
}

fn read(path: &Path) -> Result<String, AccessError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| AccessError::Unreadable { path: path.to_owned(), source })?;
    if text.len() > LARGEST {
        return Err(malformed(path, None, "it has more than 64 KiB; it is not a file of passwords"));
    }
    Ok(text)
}

fn malformed(path: &Path, line: Option<usize>, problem: &'static str) -> AccessError {
    AccessError::Malformed { path: path.to_owned(), line, problem }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("writes");
        file
    }

    fn found(accounts: &Accounts, name: Option<&str>, password: &str) -> Option<User> {
        accounts.find(name, password).map(|account| account.user.clone())
    }

    #[test]
    fn a_password_is_all_that_its_file_holds() {
        let accounts = Accounts::new().password_file(file("  long:enough-1\n").path(), Role::Read).expect("a password");
        assert_eq!(found(&accounts, None, "long:enough-1"), Some(User::new("read", Role::Read)));
        assert_eq!(found(&accounts, None, "long:enough-2"), None);
        assert!(!format!("{accounts:?}").contains("enough"));
    }

    #[test]
    fn users_have_names_and_roles() {
        let accounts = Accounts::new()
            .users_file(file("# who\n\nada:operate:correct:horse:battery\nbob:read:staple-of-twelve\n").path())
            .expect("users");
        let found = |name, password| found(&accounts, name, password);
        assert_eq!(found(Some("ada"), "correct:horse:battery"), Some(User::new("ada", Role::Operate)));
        assert_eq!(found(Some("bob"), "correct:horse:battery"), None);
        assert_eq!(found(None, "staple-of-twelve"), Some(User::new("bob", Role::Read)));
    }

    #[test]
    fn an_account_stays_the_same_until_its_role_or_password_is_another() {
        let users = |text: &str| Accounts::new().users_file(file(text).path()).expect("users");
        let first = "ada:operate:correct-horse-battery\nbob:read:staple-of-twelve\neve:read:another-of-twelve";
        let in_force = AccountsInForce::new(users(first));
        let of = |name, password| in_force.now().find(Some(name), password).cloned();
        let [ada, bob] = [of("ada", "correct-horse-battery"), of("bob", "staple-of-twelve")].map(|it| it.expect("one"));
        let eve = of("eve", "another-of-twelve").expect("one");
        let are_there = || [&ada, &bob, &eve].map(|account| in_force.now().have(account));
        in_force
            .replace(users("bob:read:staple-of-twelve\neve:operate:another-of-twelve\nada:operate:rotated-battery"));
        assert_eq!(are_there(), [false, true, false], "the password of the first and the role of the last are others");
        assert!(of("ada", "correct-horse-battery").is_none() && of("ada", "rotated-battery").is_some());
        in_force.replace(users(first));
        assert_eq!(are_there(), [false, true, false], "a password that is put back opens no session again");
        in_force.replace(users("ada:operate:correct-horse-battery"));
        assert_eq!(are_there(), [false; 3]);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_its_line_and_without_its_text() {
        for (text, part) in [
            ("", "names no user"),
            ("ada:operate:short", "line 1: the password has fewer than 12"),
            ("\nada:root:correct-horse-battery", "line 2: the role"),
            ("correct-horse-battery", "line 1: it is not of the form"),
            ("a:read:correct-horse-battery\na:read:correct-horse-battery", "line 2: the name stands there twice"),
        ] {
            let error = Accounts::new().users_file(file(text).path()).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains("battery"), "{error}");
        }
        let error = Accounts::new().password_file(file("short").path(), Role::Operate).expect_err("short").to_string();
        assert!(error.contains("fewer than 12"), "{error}");
        let two = file("correct-horse-battery\nstaple-of-twelve\n");
        let error = Accounts::new().password_file(two.path(), Role::Operate).expect_err("two lines").to_string();
        assert!(error.contains("more than one line") && !error.contains("battery"), "{error}");
        let error = Accounts::new().password_file(Path::new("/nowhere"), Role::Read).expect_err("no file").to_string();
        assert!(error.contains("`/nowhere` cannot be read"), "{error}");
    }
}
