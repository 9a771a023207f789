//! Checks how safely a server keeps confirmed messages.

use std::collections::HashMap;

use pillarbox_core::examine::Severity::{Critical, Notice};
use pillarbox_core::examine::{Check, Checked};
use redis::{Pipeline, Value};
use tokio::time::Instant;

use crate::RedisPublisher;

/// All checks of this publisher.
pub const ALL: &[&Check] = &[&PERSISTENCE, &FSYNC, &EVICTION, &REPLICATION];

static PERSISTENCE: Check = Check {
    code: "redis-not-persistent",
    severity: Critical,
    healthy: "entries are written to the append-only file",
    cause: "The server has no append-only file: all entries since the last snapshot, or all there are, end with the process.",
    remedy: "Set `appendonly yes`.",
};
static FSYNC: Check = Check {
    code: "redis-fsync-delayed",
    severity: Notice,
    healthy: "entries wait for the disk",
    cause: "Entries are confirmed before they are on the disk: with `everysec` a power cut takes up to a second of them, with `no` as many as the system likes.",
    remedy: "Set `appendfsync always` where that must not happen; else accept it with `--ignore redis-fsync-delayed`.",
};
static EVICTION: Check = Check {
    code: "redis-evicts",
    severity: Critical,
    healthy: "no stream is evicted",
    cause: "At its limit of memory the server deletes keys of any kind, whole streams among them, whether they were read or not.",
    remedy: "Set `maxmemory-policy noeviction`, or one of the `volatile-` kind.",
};
static REPLICATION: Check = Check {
    code: "redis-replication-asynchronous",
    severity: Notice,
    healthy: "no replica follows",
    cause: "Replicas follow the server and no entry waits for one: a failover loses the newest entries that were confirmed.",
    remedy: "`min-replicas-to-write` and `min-replicas-max-lag` bound the loss; nothing rules it out. Accept it with `--ignore redis-replication-asynchronous`.",
};

/// The settings that are asked for. Some servers refuse the command, and all refuse it to users that may only append.
const SETTINGS: [&str; 3] = ["appendfsync", "maxmemory-policy", "maxmemory"];

impl RedisPublisher {
    /// Asks a server about its settings, in one round trip.
    pub(crate) async fn examine_server(&self) -> Vec<Checked> {
        let deadline = Instant::now() + self.options.timeout;
        let mut pipeline = Pipeline::new();
        pipeline.cmd("INFO").arg("persistence");
        pipeline.cmd("INFO").arg("replication");
        for setting in SETTINGS {
            pipeline.cmd("CONFIG").arg("GET").arg(setting);
        }
        match self.ask(&pipeline, deadline).await {
            Ok(replies) => judge(&replies),
            Err(error) => ALL.iter().map(|check| check.not_checked(error.to_string())).collect(),
        }
    }
}

fn judge(replies: &[Value]) -> Vec<Checked> {
    let info = |index: usize| match replies.get(index) {
        Some(Value::BulkString(bytes)) => Some(facts(&String::from_utf8_lossy(bytes))),
        Some(Value::VerbatimString { text, .. }) => Some(facts(text)),
        _ => None,
    };
    let setting = |index: usize| replies.get(index + 2).and_then(|reply| setting(reply, SETTINGS[index]));
    let refused = |what: &str| format!("this user may not ask for {what}");
    let persists = info(0).and_then(|facts| facts.get("aof_enabled").cloned());
    let followers = info(1).and_then(|facts| facts.get("connected_slaves")?.parse::<u64>().ok());
    let persistence = match &persists {
        Some(enabled) => PERSISTENCE.judge((enabled != "1").then(|| "appendonly is no".to_owned())),
        None => PERSISTENCE.not_checked(refused("INFO")),
    };
    let fsync = match setting(0) {
        _ if persists.as_ref().is_some_and(|enabled| enabled != "1") => {
            FSYNC.not_checked("appendonly is no, so there is no log to write")
        }
        Some(value) => FSYNC.judge((value != "always").then(|| format!("appendfsync is {value}"))),
        None => FSYNC.not_checked(refused("CONFIG GET appendfsync")),
    };
    let eviction = match (setting(1), setting(2)) {
        (Some(policy), Some(limit)) => {
            let evicts = policy.starts_with("allkeys-") && limit != "0";
            EVICTION.judge(evicts.then(|| format!("maxmemory-policy is {policy}, maxmemory is {limit} bytes")))
        }
        _ => EVICTION.not_checked(refused("CONFIG GET maxmemory-policy")),
    };
    let replication = match followers {
        Some(number) => REPLICATION.judge((number > 0).then(|| format!("replicas attached: {number}"))),
        None => REPLICATION.not_checked(refused("INFO")),
    };
    vec![persistence, fsync, eviction, replication]
}

/// The lines `name:value` of an answer.
fn facts(text: &str) -> HashMap<String, String> {
    let line = |line: &str| line.trim().split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().filter_map(line).collect()
}

/// The value of a setting: of a list of names and values, or of a map.
fn setting(reply: &Value, name: &str) -> Option<String> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    };
    match reply {
        Value::Array(values) => match values.as_slice() {
            [key, value] if text(key).as_deref() == Some(name) => text(value),
            _ => None,
        },
        Value::Map(pairs) => {
            pairs.iter().find(|(key, _)| text(key).as_deref() == Some(name)).and_then(|(_, value)| text(value))
        }
        _ => None,
    }
}
