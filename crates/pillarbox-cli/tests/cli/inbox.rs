//! The messages that consumers have received, listed and purged.

use serde_json::json;

use crate::support::{Ended, column, execute, run, sqlite};

/// Two consumers, with messages of long ago and of just now.
const ROWS: &str = "
    INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES
        ('billing', 'm-1', 1000000), ('billing', 'm-2', 2000000), ('mailer', 'm-1', 1000000);
    INSERT INTO outbox_inbox (consumer, message_id) VALUES ('billing', 'm-3'), ('mailer', 'm-3'), ('mailer', 'm-4');
";
const LEFT: &str = "SELECT consumer || ' ' || message_id FROM outbox_inbox ORDER BY consumer, message_id";

fn inbox(store: &str, command: &str, args: &[&str]) -> Ended {
    run(&[&["inbox", command, "--store", store], args].concat())
}

#[tokio::test]
async fn consumers_are_listed_page_by_page() {
    let (_folder, store) = sqlite();
    let ended = inbox(&store, "status", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "The inbox remembers no messages.\n"));
    execute(&store, ROWS).await;
    let text = inbox(&store, "status", &[]).stdout;
    assert!(text.contains("CONSUMER") && text.contains("billing") && text.ends_with("\n\n2 consumers\n"), "{text}");
    let page = inbox(&store, "status", &["--limit", "1", "--json"]).json();
    assert_eq!(page["next"], json!("billing"));
    assert_eq!((&page["consumers"][0]["consumer"], &page["consumers"][0]["messages"]), (&json!("billing"), &json!(3)));
    assert!(page["consumers"][0]["oldest_seconds"].as_f64() > Some(1e9), "{page}");
    let page = inbox(&store, "status", &["--limit", "1", "--after", "billing", "--json"]).json();
    assert_eq!((&page["next"], &page["consumers"][0]["consumer"]), (&json!(null), &json!("mailer")));
}

#[tokio::test]
async fn old_messages_are_purged_of_one_consumer_or_of_all() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let ended = inbox(&store, "purge", &["--older-than", "30d", "--consumer", "billing", "--batch", "1", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"removed": 2})));
    assert_eq!(column(&store, LEFT).await, ["billing m-3", "mailer m-1", "mailer m-3", "mailer m-4"]);
    let ended = inbox(&store, "purge", &["--older-than", "30d"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1 message was deleted\n"));
    assert_eq!(column(&store, LEFT).await, ["billing m-3", "mailer m-3", "mailer m-4"]);
    let ended = inbox(&store, "purge", &[]);
    assert_eq!(ended.code, Some(2), "an age has to be named: {ended:?}");
}
