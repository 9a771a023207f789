use super::NodeId;

/// The past of a pending row's holder, as the column `locked_by` records it.
///
/// | `locked_by` | |
/// |---|---|
/// | NULL | nobody holds it |
/// | `node` | `node` holds it, in its memory or about to commit it |
/// | `node!` | as before, and `node` has begun an attempt that it found worth announcing |
/// | `?` | the node that held it died; it may have begun an attempt |
/// | `!` | the node that held it died, and the attempt it had begun never ended |
///
/// Neither `?` nor `!` can be in the name of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorAttempt {
    /// Nothing to worry about.
    Clean,
    /// Its node died; it is unknown if it had begun an attempt.
    Suspect,
    /// Its node died during an attempt.
    Crashed,
}

/// The mark of a dead node that may have begun an attempt.
pub const DIED: &str = "?";
/// The mark of a dead node that had begun an attempt.
pub const CRASHED: &str = "!";

impl PriorAttempt {
    /// Reads the column for `node`, which is about to deliver the row.
    #[must_use]
    pub fn read(locked_by: Option<&str>, node: &NodeId) -> Self {
        match locked_by {
            Some(DIED) => Self::Suspect,
            Some(holder) => match holder.strip_suffix(CRASHED) {
                Some(begun_by) if begun_by != node.as_str() => Self::Crashed,
                _ => Self::Clean,
            },
            None => Self::Clean,
        }
    }
}

/// The value of `locked_by` for a row of which `node` has begun an attempt.
#[must_use]
pub fn begun_by(node: &NodeId) -> String {
    format!("{node}{CRASHED}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prior_attempts_are_read_from_the_column() {
        let node = NodeId::from_stored("me-1");
        let table = [
            (None, PriorAttempt::Clean),
            (Some("me-1"), PriorAttempt::Clean),
            (Some("me-1!"), PriorAttempt::Clean),
            (Some("other-1"), PriorAttempt::Clean),
            (Some("other-1!"), PriorAttempt::Crashed),
            (Some("?"), PriorAttempt::Suspect),
            (Some("!"), PriorAttempt::Crashed),
        ];
        for (locked_by, past) in table {
            assert_eq!(PriorAttempt::read(locked_by, &node), past, "{locked_by:?}");
        }
        assert_eq!(begun_by(&node), "me-1!");
    }
}
