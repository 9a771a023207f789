use pillarbox_core::examine::Check;
use pillarbox_core::examine::Severity::{Critical, Warning};

/// The checks that all stores have in common.
pub const ALL: &[&Check] = &[
    &UNREACHABLE,
    &UNFINISHED,
    &CLOCK,
    &SERVER,
    &SCHEMA,
    &NO_NODE,
    &EARLIER,
    &OVERDUE,
    &LEASE_ENDED,
    &UNOWNED,
    &LATE,
    &UNROUTED,
    &PAUSED,
    &DEAD,
    &BLOCKED,
    &HELD,
    &FAR,
];

pub(crate) static UNREACHABLE: Check = Check {
    code: "database-unreachable",
    severity: Critical,
    healthy: "the database answers",
    cause: "The database cannot be reached, has no connection left, or refuses the user.",
    remedy: "Mend what the evidence names: the server, the network, the credentials or the limit of connections.",
};
pub(crate) static UNFINISHED: Check = Check {
    code: "examination-unfinished",
    severity: Warning,
    healthy: "the examination has ended",
    cause: "The examination, or a statement of it, took longer than its limit or was refused: a lock may keep the tables, and what was not checked may be wrong.",
    remedy: "Look at what the database waits for, such as a session that holds a lock on the tables, and run it again.",
};
pub(super) static CLOCK: Check = Check {
    code: "clock-offset",
    severity: Warning,
    healthy: "the clocks agree",
    cause: "The clock of this host and that of the database differ: the times in events are wrong, and delays that a writer computes by its own clock end at another time. Leases are not concerned.",
    remedy: "Synchronise both hosts by NTP. Delay events by a duration, which the database's clock counts.",
};
pub(super) static SERVER: Check = Check {
    code: "server-unsuitable",
    severity: Critical,
    healthy: "the server and its tables have what deliveries depend on",
    cause: "The database speaks the protocol and lacks something that deliveries depend on, or keeps the tables in a way that rows cannot be told apart or are read too early: no node starts.",
    remedy: "Use a server, and tables, as docs/scaling.md says.",
};
pub(super) static SCHEMA: Check = Check {
    code: "schema-version",
    severity: Critical,
    healthy: "the tables are of a version that this release runs on",
    cause: "The tables are missing, older than this release needs, or newer than it knows: nodes of this release do not start.",
    remedy: "Run `pillarbox migrate` beside running nodes; for newer tables, upgrade Pillarbox. See docs/upgrading.md. What was lost is restored, or made by its statements from `pillarbox migrate --print`.",
};
pub(super) static NO_NODE: Check = Check {
    code: "no-node",
    severity: Critical,
    healthy: "a node is alive",
    cause: "No node delivers from this table: none was started, it cannot join, or all have died.",
    remedy: "Start a service with handlers or a relay. Where another program reads the table, `--ignore no-node`.",
};
pub(super) static EARLIER: Check = Check {
    code: "node-of-an-earlier-release",
    severity: Warning,
    healthy: "no living node is of a release that records no figures",
    cause: "Nodes of two releases run side by side, as during a rolling upgrade. What the later one has added does not hold for the earlier: its nodes go on with types and handlers that are paused.",
    remedy: "Finish the upgrade: replace the nodes that the evidence names. See docs/upgrading.md.",
};
pub(super) static OVERDUE: Check = Check {
    code: "renewal-overdue",
    severity: Warning,
    healthy: "every node renews its lease in time",
    cause: "A node has missed the renewals of its lease: it has died or stands still, or cannot reach or write to the database. When its lease ends, another node takes over.",
    remedy: "Look into the log and `/health/ready` of that node: a full disk, a lock, a connection that was cut, or a process that was stopped.",
};
pub(super) static LEASE_ENDED: Check = Check {
    code: "lease-ended",
    severity: Warning,
    healthy: "no node's lease has ended",
    cause: "A node died, or cannot renew its lease. Another node evicts it and takes over; without one, what it held waits.",
    remedy: "Nothing, if another node lives and it is gone in a minute. Otherwise look into the log of that node.",
};
pub(super) static UNOWNED: Check = Check {
    code: "partitions-unowned",
    severity: Critical,
    healthy: "all partitions have an owner",
    cause: "Partitions belong to no living node, so that nobody delivers their events: nodes hand them over for a moment after a start or a death, and for longer if none can acquire them.",
    remedy: "Run it again after the length of a lease, 15 s. If it stays, look into the logs of the nodes for \"partitions cannot be rebalanced\" (mode `partitioned`) or \"ownership cannot be acquired\" (modes `single_node` and `ordered`).",
};
pub(super) static LATE: Check = Check {
    code: "events-late",
    severity: Warning,
    healthy: "due events are delivered in time",
    cause: "Due events wait longer than the threshold: no node, a paused route, type or handler, a blocked key, a slow handler, a limit, or too few workers.",
    remedy: "See the first rows of docs/operating.md: other findings of this report, `handler.busy`, `handler.limited` and `route.paused` tell which it is.",
};
pub(super) static UNROUTED: Check = Check {
    code: "events-unrouted",
    severity: Warning,
    healthy: "no event waits for a handler or a route that takes it",
    cause: "No handler and no route takes these events: a writer is newer than what delivers, a route or a handler was removed, or a type is mistyped.",
    remedy: "Add a handler or a route for the types that the evidence names, or mend the writer. Until then they are looked at again every 30 s; a day after they were written they go DEAD (`dispatch.unroutable_dead_after`), where they can be replayed.",
};
pub(super) static PAUSED: Check = Check {
    code: "paused",
    severity: Warning,
    healthy: "no event is held by a pause",
    cause: "Operators have paused event types or handlers, and due events wait for them to be resumed.",
    remedy: "`pillarbox pauses` tells who has paused them and why. Once the reason is gone: `pillarbox resume type NAME` or `resume handler NAME`.",
};
pub(super) static DEAD: Check = Check {
    code: "dead-events",
    severity: Warning,
    healthy: "no events are DEAD",
    cause: "Events were given up after their last attempt, or for an error that is not tried again.",
    remedy: "`pillarbox dead summary` counts why, and `dead list` shows each. Mend the cause, then `pillarbox dead replay --all`, narrowed by `--event-type` or `--error`, or `dead discard` for those that are not wanted.",
};
pub(super) static BLOCKED: Check = Check {
    code: "keys-blocked",
    severity: Warning,
    healthy: "no key is blocked",
    cause: "In mode partitioned, later events of a key wait behind one that has failed.",
    remedy: "`pillarbox keys blocked` shows each with its error: mend its cause, such as a paused route or target of this report, and those that wait for another attempt go on by themselves. Else replay or discard one that is DEAD (`pillarbox dead`), and try one that waits for another attempt at once, or cancel it (`pillarbox pending`). To let others pass as a rule: `failing_key`.",
};
pub(super) static FAR: Check = Check {
    code: "event-far-ahead",
    severity: Warning,
    healthy: "no event of those looked at is delayed for more than a year",
    cause: "Events wait for a time that is more than a year away: as a rule a program that writes rows by SQL has given it in another unit, such as nanoseconds, or `infinity`.",
    remedy: "Mend the writer. `pillarbox pending retry --seq N` makes such an event due now, `pillarbox pending cancel --seq N` gives it up; leave the finding out by `--ignore event-far-ahead` where such times are meant.",
};
pub(super) static HELD: Check = Check {
    code: "event-held",
    severity: Warning,
    healthy: "no event is held for long",
    cause: "A living node holds an event that has been due for long: its handler hangs, or more waits in that node's memory than it can deliver.",
    remedy: "The node's log says \"a handler has not ended yet\" if it hangs; see `handler.oldest`. Restart that node if its handler blocks a thread.",
};
