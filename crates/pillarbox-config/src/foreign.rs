//! The names that other outboxes and clients have for what a key here means: the one table of them.

/// Names for a key, in whatever case and with whatever separators, the key, and a remark on a difference in meaning. A key of a relay's file
/// alone is written `route.KEY` or `publisher.KEY`, all others as in [`Settings`](crate::Settings).
const NAMES: [(&[&str], &str, &str); 27] = [
    // The same word stands for different things in different places, so that a name may be in several lines.
    (
        &["max_retries", "retries", "retry_count", "retry_limit", "max_retry_count"],
        "retry.max_attempts",
        "it counts the first call too: retries + 1",
    ),
    (&["attempts", "max_tries", "max_deliveries"], "retry.max_attempts", "it counts the first call too"),
    (&["initial_delay", "initial_interval", "initial_backoff", "base_delay", "retry_delay"], "retry.base", ""),
    (&["max_delay", "max_backoff"], "retry.cap", ""),
    (&["backoff", "backoff_policy", "retry_policy"], "retry.policy", ""),
    (&["increment"], "retry.step", ""),
    (&["retry_on_exceptions", "include_exceptions", "retryable_exceptions"], "retry.retry_on", ""),
    (&["no_retry_on", "exclude_exceptions", "non_retryable_exceptions"], "retry.never_retry_on", ""),
    (
        &["stop_on_first_failure"],
        "retry.failing_key",
        "`wait` is what `true` means there, and `continue` is what `false` means",
    ),
    (
        &["poll_interval", "polling_interval", "interval", "interval_ms", "schedule"],
        "claim.max_interval",
        "the longest time between two polls while nothing is due",
    ),
    (&["batch_size", "fetch_size", "poll_size", "max_poll_records"], "claim.batch", ""),
    (&["worker_count", "threads", "parallelism", "concurrency", "max_concurrency"], "dispatch.workers", ""),
    (&["hot_queue_capacity"], "dispatch.hot_capacity", ""),
    (&["cold_queue_capacity", "queue_capacity"], "dispatch.cold_capacity", ""),
    (&["visibility_timeout", "execution_timeout", "job_timeout"], "dispatch.handler_timeout", ""),
    (
        &["lock_timeout", "lock_at_most_for", "lease_duration", "stale_instance_timeout", "heartbeat_timeout"],
        "ownership.lease",
        "",
    ),
    (&["instance_id", "instance_name", "node_id"], "ownership.node_name", ""),
    (&["delete_completed_records", "delete_on_completion", "delete_completed"], "settle.delete_done", ""),
    (&["retention", "retention_period", "purge_retention", "keep_for"], "purge.done_after", ""),
    (&["purge_batch_size"], "purge.batch", ""),
    (&["purge_interval_seconds", "cleanup_interval"], "purge.interval", ""),
    (&["drain_timeout_ms", "shutdown_timeout", "graceful_shutdown_timeout"], "shutdown.drain_timeout", ""),
    (&["table_name"], "store.table", ""),
    (&["jdbc_url", "database_url", "datasource_url", "dsn", "connection_string"], "store.url", ""),
    (&["schema_initialization", "auto_migrate", "create_schema"], "store.migrate", ""),
    (&["topic", "subject", "exchange", "queue", "channel", "stream", "destination", "target"], "route.to", ""),
    (&["bootstrap_servers", "brokers", "servers", "hosts", "host", "address", "endpoint"], "publisher.url", ""),
];

/// The keys that somebody may mean who writes `name`, the last part of a key, as another outbox has it, with a remark that may be empty.
pub fn meant_by(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let bare = bare(name);
    NAMES
        .iter()
        .filter(move |(names, ..)| names.iter().any(|other| self::bare(other) == bare))
        .map(|(_, key, note)| (*key, *note))
}

/// A name without what differs between `max-retries`, `maxRetries` and `max_retries`.
fn bare(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    #[test]
    fn a_name_of_another_outbox_leads_to_a_key_that_there_is() {
        let keys = Keys::known();
        for (names, key, _) in NAMES {
            let is_of_relay = key.starts_with("route.") || key.starts_with("publisher.");
            assert!(is_of_relay || keys.kind(key).is_some(), "{key}");
            assert!(names.iter().all(|name| keys.kind(name).is_none()), "{names:?}");
        }
        for name in ["max_retries", "maxRetries", "max-retries", "MAX_RETRIES"] {
            let meant: Vec<_> = meant_by(name).collect();
            assert_eq!(meant, [("retry.max_attempts", "it counts the first call too: retries + 1")], "{name}");
        }
        assert_eq!(meant_by("max_attempts").count(), 0, "our own name");
    }
}
