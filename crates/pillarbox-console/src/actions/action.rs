use pillarbox_core::store::{EventState, OperatorAction};
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// The action that a form or an address names.
pub(crate) fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperatorAction, D::Error> {
    let name = String::deserialize(deserializer)?;
    let action = OperatorAction::ALL.into_iter().find(|action| action.name() == name);
    action.ok_or_else(|| D::Error::custom("`do` is none of replay, discard, retry-now and cancel; name one of these"))
}

/// The title of its button.
pub(crate) const fn title(action: OperatorAction) -> &'static str {
    match action {
        OperatorAction::Replay => "Replay",
        OperatorAction::Discard => "Discard",
        OperatorAction::RetryNow => "Try now",
        OperatorAction::Cancel => "Cancel",
    }
}

/// The consequence, in a sentence.
pub(crate) const fn consequence(action: OperatorAction) -> &'static str {
    match action {
        OperatorAction::Replay => "They become NEW, without attempts and error, and are delivered again at once.",
        OperatorAction::Discard => "They are deleted for good. Nothing brings them back.",
        OperatorAction::RetryNow => "Their next attempt begins now; their attempts and errors stay.",
        OperatorAction::Cancel => "They end without a delivery. A call that runs is not stopped.",
    }
}

/// True if what it takes away does not come back.
pub(crate) const fn is_final(action: OperatorAction) -> bool {
    matches!(action, OperatorAction::Discard | OperatorAction::Cancel)
}

/// True if it changes rows in this state.
pub(crate) fn is_about(action: OperatorAction, state: EventState) -> bool {
    match action {
        OperatorAction::Replay | OperatorAction::Discard => state == EventState::Dead,
        OperatorAction::RetryNow => matches!(state, EventState::Delayed | EventState::Retrying),
        OperatorAction::Cancel => state.is_pending(),
    }
}
