//! The status of a running relay, from the address of its `relay.listen`.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use pillarbox_doctor::{NoAnswer, RoutePause, SourceStatus, Sources};
use serde::Deserialize;
use tokio::time::timeout;

use crate::report::ConfigurationReport;

/// The time that a relay may take to tell its status.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a status.
const STATUS: usize = 4 << 20;

/// The part of a status that is read.
#[derive(Deserialize)]
pub(super) struct Status {
    started: bool,
    pub(super) configuration: Option<ConfigurationReport>,
    sources: Vec<Source>,
}

#[derive(Deserialize)]
struct Source {
    source: String,
    ready: bool,
    #[serde(default)]
    database: String,
    #[serde(default)]
    table: String,
    #[serde(default)]
    problems: Vec<String>,
    #[serde(default)]
    routes: Vec<Route>,
}

#[derive(Deserialize)]
struct Route {
    route: String,
    #[serde(flatten)]
    state: State,
    #[serde(default)]
    paused_targets: usize,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    target: String,
    #[serde(flatten)]
    state: State,
}

/// A state that a later release has added is one that delivers, for all that is known here.
#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State {
    Paused {
        problem: String,
    },
    Probing {
        problem: String,
    },
    /// Relays built before 0.1.0 say `paused_by_hand`.
    #[serde(alias = "paused_by_hand")]
    PausedByOperator {
        reason: String,
    },
    #[serde(other)]
    Delivering,
}

/// An outbox that is examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Examined {
    /// The name of its source.
    pub(super) source: String,
    /// The database, without credentials.
    pub(super) database: String,
    pub(super) table: String,
}

/// The sources of the relay that listens there, beside what is examined.
pub(super) async fn sources(listen: Option<SocketAddr>, examined: &[Examined]) -> Sources {
    let status = of_relay(listen).await?;
    if !status.started {
        let problems = vec!["is starting".to_owned()];
        return Ok(vec![SourceStatus { name: "of the relay".to_owned(), problems, ..SourceStatus::default() }]);
    }
    Ok(status.sources.into_iter().map(|source| source.beside(examined)).collect())
}

impl Source {
    fn beside(self, examined: &[Examined]) -> SourceStatus {
        let Self { source: name, ready, database, table, mut problems, routes } = self;
        if !ready && problems.is_empty() {
            problems.push("is not ready".to_owned());
        }
        let here = examined.iter().find(|examined| examined.source == name);
        // One that could not be opened yet has no database.
        let other = here.filter(|here| !database.is_empty() && (&here.database, &here.table) != (&database, &table));
        let elsewhere = other.map(|here| {
            format!("it works on {database}, table {table}; examined is {}, table {}", here.database, here.table)
        });
        SourceStatus { name, problems, pauses: routes.into_iter().flat_map(Route::pauses).collect(), elsewhere }
    }
}

impl Route {
    fn pauses(self) -> Vec<RoutePause> {
        let Self { route, state, paused_targets: count, targets } = self;
        let whole = match state {
            State::Delivering => None,
            State::PausedByOperator { reason } => Some(RoutePause::ByOperator { route: route.clone(), reason }),
            State::Paused { problem } | State::Probing { problem } => {
                Some(RoutePause::Destination { route: route.clone(), problem })
            }
        };
        let problem = |state| match state {
            State::Paused { problem } | State::Probing { problem } => problem,
            State::PausedByOperator { reason } => reason,
            State::Delivering => String::new(),
        };
        let some = targets.into_iter().map(|Target { target, state }| (target, problem(state))).collect();
        let some = (count > 0).then_some(RoutePause::Targets { route, count, some });
        whole.into_iter().chain(some).collect()
    }
}

/// The status of the relay that listens there; the reason if it tells none.
pub(super) async fn of_relay(listen: Option<SocketAddr>) -> Result<Status, NoAnswer> {
    let Some(listen) = listen else {
        return Err(NoAnswer::Absent("the file has no `relay.listen`, at which its relay could be asked".to_owned()));
    };
    match timeout(ANSWER_TIMEOUT, ask(reached_at(listen))).await {
        Ok(answer) => answer.map_err(|problem| problem.at(listen)),
        Err(_elapsed) => {
            Err(NoAnswer::Silent(format!("http://{listen}/status has not answered within {ANSWER_TIMEOUT:?}")))
        }
    }
}

/// The reason why an address has told no status.
enum Problem {
    /// Nobody listens.
    Refused,
    Other(String),
}

impl Problem {
    fn at(self, listen: SocketAddr) -> NoAnswer {
        // An address of another host may be out of reach from here.
        let is_here = listen.ip().is_loopback() || listen.ip().is_unspecified();
        match self {
            Self::Refused if is_here => NoAnswer::NotRunning(format!("nobody listens at {listen} on this host")),
            Self::Refused => NoAnswer::Absent(format!("no relay answers at {listen}: connection refused")),
            Self::Other(problem) => {
                NoAnswer::Absent(format!("no relay tells its status at http://{listen}/status: {problem}"))
            }
        }
    }
}

impl From<hyper_util::client::legacy::Error> for Problem {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        // The client's own text does not name the cause.
        let mut cause: &dyn Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        match cause.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::ConnectionRefused => Self::Refused,
            _ => Self::Other(cause.to_string()),
        }
    }
}

async fn ask(address: SocketAddr) -> Result<Status, Problem> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let other = |problem: &str| Problem::Other(problem.to_owned());
    let uri = format!("http://{address}/status").parse().map_err(|_| other("the address cannot be asked"))?;
    let response = client.get(uri).await?;
    let body = to_bytes(Body::new(response.into_body()), STATUS).await.map_err(|error| other(&error.to_string()))?;
    serde_json::from_slice(&body).map_err(|_| other("what answers there is no relay"))
}

/// The address at which this host reaches a listener at `listen`.
fn reached_at(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(source: serde_json::Value) -> Result<SourceStatus, serde_json::Error> {
        let examined =
            |source: &str| Examined { source: source.to_owned(), database: "d".to_owned(), table: "t".to_owned() };
        serde_json::from_value::<Source>(source).map(|source| source.beside(&[examined("other"), examined("shop")]))
    }

    #[test]
    fn a_relay_that_works_on_another_database_is_told() -> Result<(), serde_json::Error> {
        let elsewhere = |source: &str, database: &str, table: &str| {
            let told = status(json!({"source": source, "ready": true, "database": database, "table": table}))?;
            Ok::<_, serde_json::Error>(told.elsewhere)
        };
        assert_eq!(
            (elsewhere("shop", "d", "t")?, elsewhere("shop", "", "")?, elsewhere("new", "e", "t")?),
            (None, None, None)
        );
        let expected = "it works on e, table t; examined is d, table t";
        assert_eq!(elsewhere("shop", "e", "t")?.as_deref(), Some(expected));
        assert!(elsewhere("shop", "d", "u")?.is_some());
        Ok(())
    }

    #[test]
    fn a_status_tells_what_is_paused_and_why() -> Result<(), serde_json::Error> {
        let told = status(
            json!({"source": "shop", "ready": false, "problems": ["cannot read the table"], "database": "d", "routes": [
                {"route": "a", "publisher": "nats", "address": "n", "state": "delivering"},
                {"route": "b", "state": "paused", "next_probe_ms": 10, "problem": "refused"},
                {"route": "c", "state": "probing", "problem": "late"},
                {"route": "d", "state": "paused_by_operator", "reason": "a fair"},
                {"route": "e", "state": "delivering", "paused_targets": 3, "targets": [{"target": "https://t", "state": "probing", "problem": "503"}]},
                {"route": "f", "state": "of a later release"},
                {"route": "g", "state": "paused_by_hand", "reason": "of an earlier release"},
            ]}),
        )?;
        let text = str::to_owned;
        let expected = [
            RoutePause::Destination { route: text("b"), problem: text("refused") },
            RoutePause::Destination { route: text("c"), problem: text("late") },
            RoutePause::ByOperator { route: text("d"), reason: text("a fair") },
            RoutePause::Targets { route: text("e"), count: 3, some: vec![(text("https://t"), text("503"))] },
            RoutePause::ByOperator { route: text("g"), reason: text("of an earlier release") },
        ];
        assert_eq!(
            (told.name.as_str(), told.problems, &told.pauses[..]),
            ("shop", vec![text("cannot read the table")], &expected[..])
        );
        let unready = status(json!({"source": "shop", "ready": false}))?;
        assert_eq!(unready.problems, ["is not ready"]);
        Ok(())
    }

    #[tokio::test]
    async fn a_relay_that_does_not_listen_cannot_be_asked() {
        let absent = |answer: Sources| match answer {
            Err(NoAnswer::Absent(reason)) => reason,
            other => format!("{other:?}"),
        };
        assert!(absent(sources(None, &[]).await).contains("`relay.listen`"));
        let answer = sources(Some(SocketAddr::from(([127, 0, 0, 1], 1))), &[]).await;
        assert_eq!(answer, Err(NoAnswer::NotRunning("nobody listens at 127.0.0.1:1 on this host".to_owned())));
    }

    #[tokio::test]
    async fn a_process_that_accepts_and_says_nothing_is_silent() {
        let frozen = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = frozen.local_addr().expect("an address");
        assert!(matches!(sources(Some(address), &[]).await, Err(NoAnswer::Silent(_))));
    }
}
