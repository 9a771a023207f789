use std::borrow::Cow;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::notation::{parse, written};

/// The fate of an event that no handler takes. Either way a warning or an error in the log names its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unroutable {
    /// It goes DEAD at once, with an error that names its types.
    Dead,
    /// It stays pending and is looked at again after this long, without counting an attempt: during a rolling deployment a
    /// newer node may know it. It goes DEAD when it is
    /// [too old](crate::config::DispatchConfig::unroutable_dead_after). The default, every 30 seconds.
    ///
    /// It waits as a failing event does: in mode `partitioned` the later events of its key wait with it, unless
    /// [`FailingKey::Continue`](crate::config::FailingKey) says otherwise, and in mode `ordered` all that is behind it.
    Park(Duration),
}

impl Default for Unroutable {
    fn default() -> Self {
        Self::Park(Duration::from_secs(30))
    }
}

/// Written as `dead`, or as `park 30s`.
impl Serialize for Unroutable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Dead => serializer.serialize_str("dead"),
            Self::Park(delay) => serializer.collect_str(&format_args!("park {}", written(*delay))),
        }
    }
}

impl<'de> Deserialize<'de> for Unroutable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        match text.split_once(' ') {
            None if text == "dead" => Ok(Self::Dead),
            Some(("park", delay)) => parse(delay.trim()).map(Self::Park).map_err(D::Error::custom),
            _ => Err(D::Error::custom(format!(
                "is {text:?}; write `dead`, or `park` and for how long, such as `park 30s`"
            ))),
        }
    }
}
