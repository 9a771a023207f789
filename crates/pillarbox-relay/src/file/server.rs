use std::net::SocketAddr;
use std::time::Duration;

use pillarbox_routes::Unrouted;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Section `[relay]`: what concerns the process as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// Where `/health/live`, `/health/ready`, `/status` and `/metrics` are served: `IP:PORT`. Default: nowhere. They ask for no
    /// credentials, and show no payload and no secret.
    pub listen: Option<SocketAddr>,
    /// Events handed to a publisher at once, 1 to 10,000. Default 256.
    pub batch: usize,
    /// What becomes of an event that no route takes: `dead`, `drop`, or `park 30s`. Default `dead`.
    #[serde(deserialize_with = "unrouted")]
    pub unrouted: Unrouted,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { listen: None, batch: 256, unrouted: Unrouted::default() }
    }
}

const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30 * 24 * 3600);

fn unrouted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Unrouted, D::Error> {
    let text = String::deserialize(deserializer)?;
    match (&*text, text.strip_prefix("park ")) {
        ("dead", _) => Ok(Unrouted::Dead),
        ("drop", _) => Ok(Unrouted::Drop),
        (_, Some(delay)) => match humantime::parse_duration(delay) {
            // More often would be work for the database without end; less often is never.
            Ok(delay) if (LEAST..=MOST).contains(&delay) => Ok(Unrouted::Park(delay)),
            Ok(_) => Err(D::Error::custom(
                "`unrouted` parks for less than a second or more than 30 days; write such as `park 30s`",
            )),
            Err(error) => {
                Err(D::Error::custom(format!("`unrouted` names no duration ({error}); write such as `park 30s`")))
            }
        },
        _ => Err(D::Error::custom("`unrouted` is none of these: write `dead`, `drop`, or `park 30s`")),
    }
}

/// Reads a duration written as text, such as `30s`.
pub(super) fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map(Some).map_err(|error| {
        D::Error::custom(format!("{text:?} is no duration ({error}); write it as in `30s` or `500ms`"))
    })
}
