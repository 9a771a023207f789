use std::fmt;
use std::str::FromStr;

/// Who may deliver a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The one node that owns all partitions; further nodes wait as standbys.
    SingleNode,
}

impl Mode {
    /// Its name in `outbox_node.mode`, in logs and in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SingleNode => "single_node",
        }
    }

    /// Whether nodes of the two modes may run on the same table at the same time.
    #[must_use]
    pub fn coexists_with(self, other: Self) -> bool {
        self == other
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name {
            "single_node" => Ok(Self::SingleNode),
            _ => Err(UnknownMode(name.to_owned())),
        }
    }
}

/// A mode of a later release, or a typing error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}`")]
pub struct UnknownMode(String);
