use serde::{Deserialize, Serialize};

/// The growth of the delays between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryPolicyKind {
    /// Each delay is `retry.multiplier` times as long as the one before, up to `retry.cap`.
    #[default]
    Exponential,
    /// Each delay is longer by `retry.step` than the one before, up to `retry.cap`.
    Linear,
    /// Every delay is `retry.base`.
    Fixed,
}

impl RetryPolicyKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Linear => "linear",
            Self::Fixed => "fixed",
        }
    }
}

/// The moment at which a commit of SQLite is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// Before it returns.
    #[default]
    Full,
    /// Soon: a loss of power may take back the last ones.
    Normal,
}
