use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pillarbox_core::examine::{Check, Checked, Severity};

/// Sources, routes and targets that are named in evidence.
const NAMED: usize = 5;

/// The checks of a process that delivers: of a relay, or of a service with routes.
pub const ALL: &[&Check] = &[&NOT_RUNNING, &SILENT, &ELSEWHERE, &UNREADY, &ROUTE, &TARGETS, &BY_OPERATOR];

static NOT_RUNNING: Check = Check {
    code: "relay-not-running",
    severity: Severity::Warning,
    healthy: "a process listens where the relay should",
    cause: "Nobody listens on this host where the file says that its relay does: it does not run, or works by a file with another `relay.listen`. Other nodes may deliver meanwhile.",
    remedy: "Start it, and look into its log for the reason why it ended. Where the relay of this file runs on another host, run the doctor there, or `--ignore relay-not-running`.",
};

static SILENT: Check = Check {
    code: "relay-silent",
    severity: Severity::Critical,
    healthy: "the process that delivers answers",
    cause: "Something listens at the address of the relay, and does not answer: the process stands still, or has no time for its tasks. Another node takes over what it holds when its lease ends.",
    remedy: "Look at the process on its host: whether it was stopped (`kill -CONT`), waits for a disk, or has no processor. Else restart it.",
};

static ELSEWHERE: Check = Check {
    code: "relay-elsewhere",
    severity: Severity::Critical,
    healthy: "the process delivers from the databases that are examined",
    cause: "The process that delivers works on another database or table than this examination: its variables or files are not those of whoever runs the doctor, so that what is said of the outbox is of another one.",
    remedy: "Run the doctor with the variables and the files of the relay: where it runs, and as its user.",
};

static UNREADY: Check = Check {
    code: "relay-unready",
    severity: Severity::Critical,
    healthy: "the process delivers from all of its sources",
    cause: "The process that delivers gets errors from a database or no answer, may not join its nodes, has all workers in slow calls, or is starting.",
    remedy: "Mend what the evidence names. It tries again by itself. A secret that was changed is in force after a SIGHUP to the relay.",
};

static ROUTE: Check = Check {
    code: "route-paused",
    severity: Severity::Critical,
    healthy: "no route is paused",
    cause: "The destination of a route does not answer, or refuses what it is sent: its events wait in the table, and no attempt is counted.",
    remedy: "Mend the destination that the evidence names. The route tries again by itself; the console's page Routes has a button that does so at once.",
};

static TARGETS: Check = Check {
    code: "target-paused",
    severity: Severity::Warning,
    healthy: "no target of a route is paused by itself",
    cause: "Some of a route's targets or servers do not answer, or refuse what they are sent: their events wait in the table, and those for the others are delivered, but for later events of the same keys in mode partitioned.",
    remedy: "Mend the targets that the evidence names, or tell who runs them. Each is tried again by itself. `pillarbox pending list --state retrying` shows the events that wait, with their tenants.",
};

static BY_OPERATOR: Check = Check {
    code: "route-paused-by-hand",
    severity: Severity::Warning,
    healthy: "no route is paused by an operator",
    cause: "An operator has paused a route of this process: its events wait in the table.",
    remedy: "Resume it on the console's page Routes once its reason is gone. `pillarbox audit` tells who has paused it.",
};

/// A source of deliveries, as the process that delivers from it tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// The reasons for which it is not ready, without secrets; empty if it is.
    pub problems: Vec<String>,
    /// The pauses of its routes and targets.
    pub pauses: Vec<RoutePause>,
    /// The database and table that it works on beside those that are examined, if they are others.
    pub elsewhere: Option<String>,
}

/// A route that does not deliver, or not everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutePause {
    /// The destination takes nothing.
    Destination {
        /// The name of the route.
        route: String,
        /// The last problem of the destination.
        problem: String,
    },
    /// An operator has paused it.
    ByOperator {
        /// The name of the route.
        route: String,
        /// The reason that was given.
        reason: String,
    },
    /// Some targets take nothing.
    Targets {
        /// The name of the route.
        route: String,
        /// Their number.
        count: usize,
        /// Some of them, as they may be shown, each with its last problem.
        some: Vec<(String, String)>,
    },
}

/// The answer of a process that is asked for its sources.
pub type Sources = Result<Vec<SourceStatus>, NoAnswer>;

/// The reason why a process has not told its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// It cannot be asked.
    Absent(String),
    /// Nobody listens where it should.
    NotRunning(String),
    /// It is there and says nothing.
    Silent(String),
}

/// Asks a process, each time that a doctor examines it.
#[derive(Clone)]
pub(crate) struct Ask(pub(crate) Arc<dyn Fn() -> BoxFuture<'static, Sources> + Send + Sync>);

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask")
    }
}

/// A finding for which the other checks cannot be made.
fn found_alone(found: &'static Check, evidence: &str) -> Vec<Checked> {
    let judged = |check: &&'static Check| match *check {
        check if check == found => check.found(evidence),
        check => check.not_checked(evidence),
    };
    ALL.iter().map(judged).collect()
}

pub(crate) fn judge(answer: Sources) -> Vec<Checked> {
    let sources = match answer {
        Ok(sources) => sources,
        Err(NoAnswer::Absent(reason)) => return ALL.iter().map(|check| check.not_checked(reason.clone())).collect(),
        Err(NoAnswer::NotRunning(evidence)) => return found_alone(&NOT_RUNNING, &evidence),
        Err(NoAnswer::Silent(evidence)) => return found_alone(&SILENT, &evidence),
    };
    let (mut unready, mut routes, mut targets, mut by_operator) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut others = Vec::new();
    for SourceStatus { name, problems, pauses, elsewhere } in sources {
        others.extend(elsewhere.map(|elsewhere| format!("source {name}: {elsewhere}")));
        if !problems.is_empty() {
            unready.push(format!("source {name}: {}", problems.join("; ")));
        }
        for pause in pauses {
            match pause {
                RoutePause::Destination { route, problem } => {
                    routes.push(format!("source {name}, route {route}: {problem}"));
                }
                RoutePause::ByOperator { route, reason } => {
                    by_operator.push(format!("source {name}, route {route}: {reason}"));
                }
                RoutePause::Targets { route, count, some } => {
                    let shown = some.iter().map(|(target, problem)| format!("{target} ({problem})"));
                    let shown = named(shown.collect(), count);
                    targets.push(format!("source {name}, route {route}: {shown}"));
                }
            }
        }
    }
    let judge = |check: &'static Check, all: Vec<String>| {
        let count = all.len();
        check.judge((count > 0).then(|| named(all, count)))
    };
    vec![
        NOT_RUNNING.healthy(),
        SILENT.healthy(),
        judge(&ELSEWHERE, others),
        judge(&UNREADY, unready),
        judge(&ROUTE, routes),
        judge(&TARGETS, targets),
        judge(&BY_OPERATOR, by_operator),
    ]
}

/// The first of so many.
fn named(mut some: Vec<String>, count: usize) -> String {
    some.truncate(NAMED);
    let more = count.saturating_sub(some.len());
    if more > 0 {
        some.push(format!("and {more} more"));
    }
    some.join("; ")
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use pillarbox_core::examine::Judgement;

    use super::*;

    fn evidence(sources: Vec<SourceStatus>) -> Vec<(&'static str, String)> {
        let found = judge(Ok(sources)).into_iter().filter_map(|checked| match checked.judgement {
            Judgement::Found { evidence, .. } => Some((checked.check.code, evidence)),
            Judgement::Healthy | Judgement::NotChecked { .. } => None,
        });
        found.collect()
    }

    #[test]
    fn pauses_and_problems_of_a_relay_are_reported_with_their_reason() {
        let text = str::to_owned;
        let route = |number: usize| RoutePause::Destination { route: format!("r{number}"), problem: text("refused") };
        let some = (0..20).map(|number| (format!("https://t{number}"), text("503"))).collect();
        let shop = SourceStatus {
            name: text("shop"),
            problems: vec![text("cannot read the table"), text("password authentication failed")],
            pauses: vec![
                RoutePause::ByOperator { route: text("mail"), reason: text("a fair") },
                RoutePause::Targets { route: text("hooks"), count: 21, some },
            ],
            elsewhere: Some(text("it works on b.db")),
        };
        let other = SourceStatus { name: text("b"), pauses: (0..6).map(route).collect(), ..SourceStatus::default() };
        let found = evidence(vec![shop, other]);
        let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
        assert_eq!(
            codes,
            ["relay-elsewhere", "relay-unready", "route-paused", "target-paused", "route-paused-by-hand"]
        );
        let (elsewhere, found) = found.split_first().expect("findings");
        assert_eq!(elsewhere.1, "source shop: it works on b.db");
        assert_eq!(found[0].1, "source shop: cannot read the table; password authentication failed");
        assert!(found[1].1.starts_with("source b, route r0: refused; ") && found[1].1.ends_with("; and 1 more"));
        assert!(found[2].1.starts_with("source shop, route hooks: https://t0 (503); "), "{found:?}");
        assert!(found[2].1.ends_with("https://t4 (503); and 16 more"), "{found:?}");
        assert_eq!(found[3].1, "source shop, route mail: a fair");
    }

    #[test]
    fn a_process_that_does_not_answer_is_not_checked() {
        assert!(evidence(vec![SourceStatus::default()]).is_empty());
        let nobody = judge(Err(NoAnswer::Absent("connection refused".to_owned())));
        assert!(nobody.len() == ALL.len(), "{nobody:?}");
        assert!(nobody.iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })), "{nobody:?}");
        for (answer, code) in [
            (NoAnswer::Silent("no answer within 2s".to_owned()), "relay-silent"),
            (NoAnswer::NotRunning("nobody listens".to_owned()), "relay-not-running"),
        ] {
            let judged = judge(Err(answer));
            let found = judged.iter().filter(|checked| matches!(checked.judgement, Judgement::Found { .. }));
            assert_eq!(found.map(|checked| checked.check.code).collect::<Vec<_>>(), [code]);
            assert_eq!(judged.len(), ALL.len());
        }
    }
}
