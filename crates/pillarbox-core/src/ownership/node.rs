use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::ConfigError;
use crate::event::Stamp;

/// Characters of a node's name; with the incarnation it fits the table's 128.
const MAX_NAME: usize = 100;

/// One running Pillarbox: `name-incarnation`.
///
/// The incarnation is new whenever a node joins, so that a restarted process, a reused pod name, or a node that lost its
/// lease and came back is never taken for its former self.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// A new incarnation of the node called `name`.
    #[must_use]
    pub fn incarnate(name: &NodeName, stamp: &Stamp) -> Self {
        Self(format!("{}-{}", name.0, stamp.next_id()).into())
    }

    /// An id as the table holds it.
    #[must_use]
    pub fn from_stored(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of a node's id that a person chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeName(Box<str>);

impl NodeName {
    /// A name of 1 to 100 letters, digits, `.`, `_` or `-`.
    ///
    /// # Errors
    /// When it is empty, too long, or holds another character.
    pub fn new(name: &str) -> Result<Self, ConfigError> {
        let refuse = |problem: String| {
            Err(ConfigError::new("node_name", problem, "use up to 100 letters, digits, dots, underscores or hyphens"))
        };
        let characters = name.chars().count();
        if characters == 0 {
            return refuse("is empty".to_owned());
        }
        if characters > MAX_NAME {
            return refuse(format!("has {characters} characters, over the limit of {MAX_NAME}"));
        }
        match name.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
            Some(odd) => refuse(format!("contains {odd:?}")),
            None => Ok(Self(name.into())),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host's name, with characters a node name cannot hold replaced.
    #[must_use]
    pub fn of_host() -> Self {
        let host = gethostname::gethostname();
        let name: String = host
            .to_string_lossy()
            .chars()
            .take(MAX_NAME)
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' })
            .collect();
        Self(if name.is_empty() { "node".into() } else { name.into() })
    }
}

/// Refuses what [`new`](NodeName::new) refuses.
impl<'de> Deserialize<'de> for NodeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refuse = |error: ConfigError| D::Error::custom(format_args!("{}; {}", error.problem(), error.remedy()));
        Self::new(&Cow::<str>::deserialize(deserializer)?).map_err(refuse)
    }
}
