use pillarbox_core::store::Pause;
use serde::Serialize;

/// An event type or a handler that operators have paused, as `/status` shows it. Its keys are a contract.
#[derive(Debug, Serialize)]
pub struct Paused {
    /// `type` or `handler`.
    kind: &'static str,
    name: String,
    since: String,
    /// `null` if it has to be resumed.
    until: Option<String>,
    by: Option<String>,
    reason: Option<String>,
}

impl From<Pause> for Paused {
    fn from(pause: Pause) -> Self {
        let Pause { kind, name, since, until, by, reason } = pause;
        let until = until.map(|until| until.to_string());
        Self { kind: kind.name(), name, since: since.to_string(), until, by, reason }
    }
}
