use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pillarbox_routes::Unrouted;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::ConsoleSettings;

/// Section `[relay]`: what concerns the process as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address at which `/health/live`, `/health/ready`, `/status` and `/metrics` are served: `IP:PORT`. Default: none. They
    /// ask for no credentials, and show no payload and no secret.
    #[serde(deserialize_with = "address")]
    pub listen: Option<SocketAddr>,
    /// The reaction of the relay if, at its start, a broker or a database cannot be used. Default `pause`.
    pub on_unavailable: OnUnavailable,
    /// Events handed to a publisher at once, 1 to 10,000. Default 256.
    pub batch: usize,
    /// The fate of an event that no route takes: `dead`, `drop`, or `park 30s`. Default `park 30s`.
    #[serde(deserialize_with = "unrouted")]
    pub unrouted: Unrouted,
    /// The console. Default: none.
    pub console: Option<ConsoleSettings>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let (on_unavailable, unrouted) = (OnUnavailable::default(), Unrouted::default());
        Self { listen: None, on_unavailable, batch: 256, unrouted, console: None }
    }
}

/// The reaction of the relay if, at its start, a broker or a database cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnUnavailable {
    /// The routes of that broker begin paused, that database is tried again, and all else is delivered.
    #[default]
    Pause,
    /// It ends with an error.
    Exit,
}

impl OnUnavailable {
    /// As a file names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Exit => "exit",
        }
    }
}

const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30 * 24 * 3600);

/// The port of `relay.listen` that an error names where the file has none.
const USUAL_PORT: u16 = 9464;

/// Reads `IP:PORT`.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    some_address(deserializer, USUAL_PORT).map(Some)
}

/// As [`address`], where there is always one, with the setting's usual port.
pub(super) fn some_address<'de, D: Deserializer<'de>>(
    deserializer: D,
    usual_port: u16,
) -> Result<SocketAddr, D::Error> {
    parse_address(&String::deserialize(deserializer)?, usual_port).map_err(D::Error::custom)
}

/// The error names the port that was written, if there is one.
fn parse_address(text: &str, usual_port: u16) -> Result<SocketAddr, String> {
    if let Some(address) = text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0) {
        return Ok(address);
    }
    let written = match text.parse::<IpAddr>() {
        Ok(_) => None,
        Err(_) => text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()),
    };
    let port = written.filter(|port| *port != 0).unwrap_or(usual_port);
    Err(format!(
        "is no address with a port; write `127.0.0.1:{port}` for this host only, or `0.0.0.0:{port}` for other hosts too"
    ))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_port_that_was_written_or_else_the_usual_one() {
        for (text, port) in [
            ("9187", 9187),
            (":9187", 9187),
            ("localhost:9187", 9187),
            ("", 9465),
            ("here", 9465),
            ("0", 9465),
            ("127.0.0.1", 9465),
            ("127.0.0.1:0", 9465),
            ("::1", 9465),
            ("70000", 9465),
        ] {
            let error = parse_address(text, 9465).expect_err("it is no address with a port");
            assert!(error.contains(&format!("`127.0.0.1:{port}`")), "{text}: {error}");
            assert!(error.contains(&format!("`0.0.0.0:{port}`")), "{text}: {error}");
        }
        for text in ["127.0.0.1:9187", "[::1]:9187"] {
            assert_eq!(parse_address(text, 9465).map(|address| address.to_string()), Ok(text.to_owned()));
        }
    }
}
