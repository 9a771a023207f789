use crate::clock::Timestamp;

/// A change of events that somebody is about to make, for the audit table.
///
/// Texts are cut at their limits, and control characters become spaces: they come from people.
///
/// ```
/// use pillarbox_core::store::AuditedAction;
///
/// let action = AuditedAction::new("ada", "replay", r#"{"event_type":"order.placed"}"#);
/// assert_eq!((action.who(), action.action()), ("ada", "replay"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedAction {
    who: String,
    action: String,
    subject: String,
}

impl AuditedAction {
    /// The number of characters of a name that are kept.
    pub const WHO_CHARACTERS: usize = 100;
    /// The number of characters of an action that are kept.
    pub const ACTION_CHARACTERS: usize = 64;
    /// The number of characters of a subject that are kept.
    pub const SUBJECT_CHARACTERS: usize = 2_000;
    /// The number of characters of an outcome that are kept.
    pub const OUTCOME_CHARACTERS: usize = 500;

    /// An action such as `replay` by `who`, of the events that `subject` names: ids or a filter, in words such as `type order.placed`.
    #[must_use]
    pub fn new(who: &str, action: &str, subject: &str) -> Self {
        Self {
            who: bounded(who, Self::WHO_CHARACTERS),
            action: bounded(action, Self::ACTION_CHARACTERS),
            subject: bounded(subject, Self::SUBJECT_CHARACTERS),
        }
    }

    /// The person or program that acts.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The name of the action.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    /// The events that it is about.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The text of an outcome as a store keeps it.
    #[must_use]
    pub fn outcome(text: &str) -> String {
        bounded(text, Self::OUTCOME_CHARACTERS)
    }
}

/// The text within its limit, with `…` at the end if it is cut, each control character replaced: a database may refuse them, and a line of a
/// log ends at one.
fn bounded(text: &str, characters: usize) -> String {
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    match text.char_indices().nth(characters) {
        None => text.chars().map(plain).collect(),
        Some(_) => text.chars().take(characters.saturating_sub(1)).map(plain).chain(['…']).collect(),
    }
}

/// A row of the audit table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, which ascends.
    pub id: i64,
    /// The time at which the action began, by the database's clock.
    pub began_at: Timestamp,
    /// The person or program that acted.
    pub who: String,
    /// The name of the action.
    pub action: String,
    /// The events that it is about.
    pub subject: String,
    /// The number of rows that it has changed; `None` until it has ended, and where that is not known.
    pub changed: Option<u64>,
    /// The outcome: `done`, or the error. `None` until it has ended: it runs, or its process died.
    pub outcome: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::AuditedAction;

    #[test]
    fn texts_of_people_are_cut_and_stay_on_their_line() {
        let action = AuditedAction::new(&"ü".repeat(101), "re\0play\n", &"x".repeat(2_001));
        assert_eq!((action.who().chars().count(), action.subject().chars().count()), (100, 2_000));
        assert!(action.subject().ends_with("xx…"), "a reader sees that it is cut");
        assert_eq!(action.action(), "re play ");
        assert_eq!(AuditedAction::outcome(&"x".repeat(501)).chars().count(), 500);
    }
}
