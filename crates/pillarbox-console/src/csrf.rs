use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Makes the tokens of forms. Another site cannot know them, and so cannot send a form in the name of a user that is logged in.
pub(crate) struct Csrf([u8; 32]);

impl Csrf {
    pub(crate) fn new() -> Self {
        Self(rand::random())
    }

    /// The token of somebody's forms.
    pub(crate) fn token(&self, subject: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(subject.as_bytes());
        let mut token = String::with_capacity(64);
        for byte in mac.finalize().into_bytes() {
            // Text takes all that is written to it.
            let _ = write!(token, "{byte:02x}");
        }
        token
    }

    /// True if it is the token of this subject.
    pub(crate) fn is_token(&self, subject: &str, given: &str) -> bool {
        let right = self.token(subject);
        // Of hashes, the time of a comparison tells nothing.
        !right.is_empty() && Sha256::digest(right.as_bytes()) == Sha256::digest(given.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Csrf;

    #[test]
    fn a_token_is_that_of_one_subject_of_one_process() {
        let (csrf, other) = (Csrf::new(), Csrf::new());
        let token = csrf.token("ada");
        assert!(csrf.is_token("ada", &token));
        for (subject, given) in [("bob", &*token), ("ada", ""), ("ada", &token[1..])] {
            assert!(!csrf.is_token(subject, given), "{subject} {given}");
        }
        assert!(!other.is_token("ada", &token));
    }
}
