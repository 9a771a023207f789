use std::process::ExitCode;

use pillarbox::run::Drained;
use serde::Serialize;

/// The exit code of a relay that was to deliver what is due and has left some of it.
const SOME_IS_LEFT: u8 = 3;

/// The rows that a drained outbox has left. Its keys are a contract.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct DrainedJson {
    due: u64,
    blocked: u64,
    delayed: u64,
    dead: u64,
    paused: u64,
    other_nodes: usize,
}

impl From<Drained> for DrainedJson {
    fn from(drained: Drained) -> Self {
        let Drained { due, blocked, delayed, dead, paused, other_nodes, .. } = drained;
        Self { due, blocked, delayed, dead, paused, other_nodes }
    }
}

impl DrainedJson {
    /// One line for people.
    pub(super) fn text(&self) -> String {
        let Self { due, blocked, delayed, dead, paused, other_nodes } = self;
        let due = if *due == 0 { "nothing due".to_owned() } else { format!("{due} due") };
        format!(
            "left: {due}; {blocked} blocked behind a failing or paused event, {delayed} delayed, {dead} dead, {paused} paused; other nodes: {other_nodes}"
        )
    }
}

/// The exit code that says whether everything that was due is delivered.
pub(super) fn exit_code(is_complete: bool) -> ExitCode {
    if is_complete { ExitCode::SUCCESS } else { ExitCode::from(SOME_IS_LEFT) }
}
