//! Checks how safely the servers keep confirmed messages.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, StorageType};
use pillarbox_core::examine::Severity::{Critical, Notice};
use pillarbox_core::examine::{Check, Checked};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::NatsPublisher;
use crate::check::stream_of;
use crate::connection::Connection;

/// All checks of this publisher.
pub const ALL: &[&Check] = &[&MEMORY, &ONE_REPLICA, &SYNC];

static MEMORY: Check = Check {
    code: "nats-stream-memory",
    severity: Critical,
    healthy: "the streams are kept in files",
    cause: "A stream is kept in memory: its messages that were confirmed and not consumed end with the server.",
    remedy: "Make the stream anew with file storage.",
};
static ONE_REPLICA: Check = Check {
    code: "nats-stream-one-replica",
    severity: Notice,
    healthy: "the streams are replicated",
    cause: "A stream has one replica: while its server is away nothing can be published to it, and its messages are lost with that server's disk.",
    remedy: "`nats stream edit STREAM --replicas 3` in a cluster of three; on one server accept it with `--ignore nats-stream-one-replica`.",
};
static SYNC: Check = Check {
    code: "nats-sync-delayed",
    severity: Notice,
    healthy: "the servers sync each message to the disk",
    cause: "A server confirms messages before they are on its disk, and syncs every `sync_interval`, 2 minutes by default: a power cut takes those of a stream with one replica, and those of any if it reaches most servers at once.",
    remedy: "Set `sync_interval: always` in the section `jetstream` where that must not happen; else accept it with `--ignore nats-sync-delayed`.",
};

/// The question to all servers about JetStream. It belongs to the system account, whose users cannot publish to streams; another account can import
/// it as a service.
const SERVERS: &str = "$SYS.REQ.SERVER.PING.JSZ";
/// The time to wait for an answer: a user without the permission to ask gets none.
const PATIENCE: Duration = Duration::from_secs(1);

impl NatsPublisher {
    /// Asks about the streams that take the subjects, and about the server.
    pub(crate) async fn examine_streams(&self, targets: &[String], deadline: Instant) -> Vec<Checked> {
        let connection = match self.connection(deadline).await {
            Ok(linked) => linked.connection,
            Err(error) => return ALL.iter().map(|check| check.not_checked(error.to_string())).collect(),
        };
        let looking = timeout_at(deadline, streams(&connection, targets)).await;
        let mut results = match looking {
            Ok((streams, unknown)) => judge(&streams, &unknown),
            Err(_elapsed) => {
                let reason = self.late().to_string();
                [&MEMORY, &ONE_REPLICA].iter().map(|check| check.not_checked(reason.clone())).collect()
            }
        };
        results.push(sync(&connection).await);
        results
    }
}

/// The streams of the subjects, each once, and why others are not known.
async fn streams(connection: &Connection, targets: &[String]) -> (Vec<Config>, Vec<String>) {
    let (mut streams, mut unknown) = (Vec::<Config>::new(), Vec::new());
    if targets.is_empty() {
        unknown.push("every subject depends on the event, so that its stream is not known before".to_owned());
    }
    for target in targets {
        // A user without the permission to ask gets no answer.
        let found = match timeout(PATIENCE, stream_of(connection, target)).await {
            Ok(Ok(Some(name))) => name,
            Ok(Ok(None)) => continue,
            Ok(Err(error)) => {
                unknown.push(format!("{target}: {error}"));
                continue;
            }
            Err(_elapsed) => {
                unknown.push(format!("{target}: this user may not ask for streams"));
                continue;
            }
        };
        if streams.iter().any(|stream| stream.name == found) {
            continue;
        }
        match timeout(PATIENCE, connection.context.get_stream(&found)).await {
            Ok(Ok(stream)) => streams.push(stream.cached_info().config.clone()),
            Ok(Err(error)) => unknown.push(format!("stream {found}: {error}")),
            Err(_elapsed) => unknown.push(format!("stream {found}: this user may not ask about it")),
        }
    }
    (streams, unknown)
}

fn judge(streams: &[Config], unknown: &[String]) -> Vec<Checked> {
    let of = |check: &'static Check, is: fn(&Config) -> bool, words: &str| {
        let all: Vec<String> = streams
            .iter()
            .filter(|stream| is(stream))
            .map(|stream| format!("stream {} {words}", stream.name))
            .collect();
        if all.is_empty() && !unknown.is_empty() {
            return check.not_checked(unknown.join("; "));
        }
        check.judge((!all.is_empty()).then(|| all.join("; ")))
    };
    vec![
        of(&MEMORY, |stream| stream.storage == StorageType::Memory, "is kept in memory"),
        of(&ONE_REPLICA, |stream| stream.num_replicas <= 1, "has one replica"),
    ]
}

async fn sync(connection: &Connection) -> Checked {
    let asking = connection.client().request(SERVERS, Default::default());
    let answer = match timeout(PATIENCE, asking).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => {
            return SYNC.not_checked(format!(
                "only the system account may ask; import its service `{SERVERS}` into this account, or look for \
                 `sync_interval` in the configuration of the servers"
            ));
        }
    };
    judge_sync(&serde_json::from_slice(&answer.payload).unwrap_or_default())
}

/// Judges the answer of a server about JetStream. Those before 2.10 have no such setting.
fn judge_sync(said: &Value) -> Checked {
    let name = said["server"]["name"].as_str().unwrap_or("?");
    let config = &said["data"]["config"];
    if !config.is_object() {
        return SYNC.not_checked("the server has not told its configuration");
    }
    if config["sync_always"] == Value::Bool(true) {
        return SYNC.healthy();
    }
    SYNC.found(match config["sync_interval"].as_u64() {
        Some(nanos) => format!("server {name} syncs every {:?}", Duration::from_nanos(nanos)),
        None => format!("server {name} tells no sync_interval, as those before 2.10, which sync every 2 minutes"),
    })
}

#[cfg(test)]
mod tests {
    use pillarbox_core::examine::Judgement;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_server_that_syncs_always_is_healthy() {
        let said = |config: Value| judge_sync(&json!({"server": {"name": "n1"}, "data": {"config": config}})).judgement;
        assert_eq!(said(json!({"sync_always": true, "sync_interval": 120_000_000_000_u64})), Judgement::Healthy);
        for (config, part) in
            [(json!({"sync_interval": 120_000_000_000_u64}), "syncs every 120s"), (json!({}), "before 2.10")]
        {
            let judged = said(config);
            assert!(matches!(&judged, Judgement::Found { evidence, .. } if evidence.contains(part)), "{judged:?}");
        }
        assert!(matches!(said(Value::Null), Judgement::NotChecked { .. }));
    }
}
