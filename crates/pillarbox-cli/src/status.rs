use std::process::ExitCode;
use std::time::Duration;

use pillarbox::Store;
use pillarbox::maintain::{Backlog, Counts, NodeFigures, NodeStatus, PartitionBacklog, Pause};
use pillarbox::run::Mode;
use serde::Serialize;

use crate::args::{StatusArgs, Target};
use crate::failure::Failure;
use crate::pause::{self, PauseJson};
use crate::{duration, store};
use pillarbox_program::report;
use pillarbox_program::report::{grouped, micros, plain, rounded};

/// Shows the events that wait, those that were given up, and the nodes.
pub(crate) async fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let status = store::on(&args.target, async |store| Status::read(store, args.exact).await).await?;
    report::print_either(args.target.json, &status.json(), || status.text(&args.target))?;
    Ok(ExitCode::SUCCESS)
}

/// The state of an outbox at one moment.
#[derive(Debug)]
struct Status {
    store: String,
    table: String,
    backlog: Backlog,
    partitions: PartitionBacklog,
    /// Set only with `--exact`, since counting reads the whole table.
    counts: Option<Counts>,
    nodes: Vec<NodeStatus>,
    pauses: Vec<Pause>,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Json<'a> {
    store: &'a str,
    table: &'a str,
    due: u64,
    delayed: u64,
    dead: u64,
    oldest_due_seconds: Option<f64>,
    #[serde(with = "Partitions")]
    partitions: PartitionBacklog,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Rows>,
    nodes: Vec<Node<'a>>,
    pauses: Vec<PauseJson<'a>>,
}

/// The partitions: the number that no node owns, the pending rows of all, and the pending rows of the fullest one.
#[derive(Serialize)]
#[serde(remote = "PartitionBacklog")]
struct Partitions {
    unowned: u16,
    pending: u64,
    most_pending: u64,
}

/// Rows by state.
#[derive(Debug, Serialize)]
struct Rows {
    new: u64,
    retry: u64,
    done: u64,
    dead: u64,
    cancelled: u64,
    unknown: u64,
}

#[derive(Debug, Serialize)]
struct Node<'a> {
    id: &'a str,
    mode: &'a str,
    since: String,
    /// Null once the lease has ended.
    lease_left_seconds: Option<f64>,
    /// The number of partitions it owns.
    partitions: u16,
    /// True if it owns any.
    owner: bool,
    /// As of its last renewal; null if its release records none.
    figures: Option<Figures>,
}

/// The counts since the node was started, and the latencies of its last interval between two renewals.
#[derive(Debug, Serialize)]
struct Figures {
    delivered: u64,
    failed: u64,
    dead: u64,
    latency_p50_seconds: Option<f64>,
    latency_p99_seconds: Option<f64>,
    busy: u32,
    queued: u64,
}

impl From<NodeFigures> for Figures {
    fn from(figures: NodeFigures) -> Self {
        let NodeFigures { delivered, failed, dead, latency_p50, latency_p99, busy, queued } = figures;
        let [latency_p50_seconds, latency_p99_seconds] =
            [latency_p50, latency_p99].map(|time| time.map(|time| rounded(time.as_secs_f64(), 6)));
        Self { delivered, failed, dead, latency_p50_seconds, latency_p99_seconds, busy, queued }
    }
}

impl<'a> From<&'a NodeStatus> for Node<'a> {
    fn from(node: &'a NodeStatus) -> Self {
        Self {
            id: node.node.as_str(),
            mode: &node.mode,
            since: node.started_at.to_string(),
            lease_left_seconds: node.lease_left.map(|left| rounded(left.as_secs_f64(), 3)),
            partitions: node.partitions,
            owner: node.partitions > 0,
            figures: node.figures.map(Figures::from),
        }
    }
}

impl Status {
    async fn read(store: &dyn Store, exact: bool) -> Result<Self, Failure> {
        let info = store.info();
        Ok(Self {
            store: format!("{} {}", info.dialect, info.address),
            table: info.table.clone(),
            backlog: store.backlog().await?,
            partitions: store.partitions().await?,
            counts: if exact { Some(store.counts().await?) } else { None },
            nodes: store.nodes().await?,
            pauses: store.pauses().await?,
        })
    }

    fn json(&self) -> Json<'_> {
        let Backlog { due, delayed, dead, oldest_due } = self.backlog;
        Json {
            store: &self.store,
            table: &self.table,
            due,
            delayed,
            dead,
            oldest_due_seconds: oldest_due.map(|age| rounded(age.as_secs_f64(), 3)),
            partitions: self.partitions,
            rows: self.counts.map(|Counts { new, done, retry, dead, cancelled, unknown }| Rows {
                new,
                retry,
                done,
                dead,
                cancelled,
                unknown,
            }),
            nodes: self.nodes.iter().map(Node::from).collect(),
            pauses: self.pauses.iter().map(PauseJson::from).collect(),
        }
    }

    fn text(&self, target: &Target) -> String {
        let Backlog { due, delayed, dead, oldest_due } = self.backlog;
        let oldest = oldest_due.map_or_else(|| "-".to_owned(), duration::human);
        let list = format!("given up; `{}` counts why", target.command(&["dead", "summary"]));
        let see_blocked = format!("see `{}`", target.command(&["keys", "blocked"]));
        let mut lines = vec![
            (
                "due",
                grouped(due),
                "waiting for a node, in the memory of one, behind another event of the key, or left by a paused route (the relay's /status says why)",
            ),
            ("oldest due", oldest, "how long it has been waiting"),
            (
                "delayed",
                grouped(delayed),
                "waiting for their time: delayed, deferred by a paused route (the relay's /status says why), or to be tried again",
            ),
            ("dead", grouped(dead), list.as_str()),
        ];
        if self.nodes.iter().any(|node| node.mode == Mode::Partitioned.name()) {
            // Counting the keys would cost more than all the rest.
            if dead > 0 {
                lines.push(("blocked", String::new(), &see_blocked));
            }
            let PartitionBacklog { unowned, pending, most_pending } = self.partitions;
            lines.extend([
                ("pending", grouped(pending), "rows of all partitions, whatever their time"),
                ("most pending", grouped(most_pending), "rows of the partition that has most of them"),
                ("unowned", grouped(unowned.into()), "partitions of which no node delivers the events, of 256"),
            ]);
        }
        if let Some(counts) = self.counts {
            lines.extend([
                ("NEW", grouped(counts.new), "rows waiting for their first attempt"),
                ("RETRY", grouped(counts.retry), "rows waiting for another attempt"),
                ("DONE", grouped(counts.done), "rows delivered, kept until they are purged"),
                ("DEAD", grouped(counts.dead), "rows given up"),
                ("CANCELLED", grouped(counts.cancelled), "rows cancelled by an operator, kept as DONE ones are"),
            ]);
            if counts.unknown > 0 {
                let unknown = "rows with an unknown status: they are never delivered; fix the program that writes them";
                lines.push(("unknown", grouped(counts.unknown), unknown));
            }
        }
        let paused = if self.pauses.is_empty() { String::new() } else { format!("\n\n{}", pause::table(&self.pauses)) };
        let lines = report::table(&lines).trim_fmt();
        format!("{} in {}\n\n{lines}\n\n{}{paused}", self.table, self.store, self.node_list())
    }

    fn node_list(&self) -> String {
        if self.nodes.is_empty() {
            return "No node is running: nothing is delivered.".to_owned();
        }
        let rows = self.nodes.iter().map(|node| {
            let left = node.lease_left.map_or_else(|| "ended".to_owned(), duration::human);
            let partitions = node.partitions.to_string();
            let since = report::time(node.started_at);
            let [delivered, failed, latency] = figures(node.figures);
            let (id, mode, role) = (plain(node.node.as_str()), plain(&node.mode), role(node).to_owned());
            [id, mode, since, left, partitions, delivered, failed, latency, role]
        });
        let heading = ["NODE", "MODE", "SINCE", "LEASE LEFT", "PARTITIONS", "DELIVERED", "FAILED", "P50/P99", ""];
        report::listing(heading, rows).trim_fmt()
    }
}

/// The events that a node delivered, its failed attempts, and the latencies of its last interval.
fn figures(figures: Option<NodeFigures>) -> [String; 3] {
    let Some(figures) = figures else { return std::array::from_fn(|_| "-".to_owned()) };
    let time = |time: Option<Duration>| {
        time.map_or_else(|| "-".to_owned(), |time| micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    };
    let latency = format!("{}/{}", time(figures.latency_p50), time(figures.latency_p99));
    [grouped(figures.delivered), grouped(figures.failed), latency]
}

fn role(node: &NodeStatus) -> &'static str {
    let is = |mode: Mode| node.mode == mode.name();
    match (node.lease_left, node.partitions) {
        (None, _) => "gone; its events are freed by the next node that looks",
        (Some(_), 0) if is(Mode::MultiNode) => "delivers what it claims",
        (Some(_), 0) if is(Mode::Partitioned) => "takes its share as soon as others give it",
        (Some(_), 0) => "stands by",
        (Some(_), _) if is(Mode::Partitioned) => "delivers its partitions",
        (Some(_), _) => "delivers",
    }
}
