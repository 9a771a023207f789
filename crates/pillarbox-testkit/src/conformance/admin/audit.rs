use std::time::Duration;

use pillarbox_core::clock::{Clock as _, SystemClock};
use pillarbox_core::error::BoxError;
use pillarbox_core::store::{AuditEntry, AuditedAction, Store};

use crate::Harness;
use crate::events::HOUR;
use crate::run::{Db, Outcome};

/// An entry is there before the change is made, whatever its texts are, and says more once the change has ended.
pub(in crate::conformance) async fn record_action_tells_who_did_what_and_what_became_of_it<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert_eq!(store.actions(None, 10).await?, [], "an empty table");
    let subject = format!("{{\"error\":\"100% of 'a_b' \\ größer\\n\"}}{}", "ü".repeat(3_000));
    let action = AuditedAction::new("ada@example.com ", "replay", &subject);
    let id = store.record_action(&action).await?;
    let began = entry(&*store, id).await?;
    assert_eq!((began.who.as_str(), began.action.as_str()), ("ada@example.com ", "replay"));
    assert_eq!((began.subject.as_str(), began.changed, began.outcome.as_deref()), (action.subject(), None, None));
    // Clocks differ between hosts, but not by hours.
    let now = SystemClock.now();
    assert!(now.since(began.began_at).max(began.began_at.since(now)) < HOUR, "{began:?} at {now}");

    store.end_action(id, Some(7), &"done\0".repeat(200)).await?;
    let ended = entry(&*store, id).await?;
    // As much as is kept, and a mark that it is not all.
    let outcome = format!("{}done…", "done ".repeat(99));
    assert_eq!((ended.changed, ended.outcome.as_deref()), (Some(7), Some(outcome.as_str())));
    store.end_action(id, None, "failed").await?;
    let failed = entry(&*store, id).await?;
    assert_eq!((failed.changed, failed.outcome.as_deref()), (None, Some("failed")));
    assert_eq!(AuditEntry { changed: None, outcome: None, ..ended }, began, "the rest stays");
    Ok(())
}

/// Only the entry with this number changes, and none is made.
pub(in crate::conformance) async fn end_action_leaves_other_entries_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [first, second] = [record(&*store, "a").await?, record(&*store, "b").await?];
    store.end_action(second, Some(0), "done").await?;
    store.end_action(second + 1, Some(1), "done").await?;
    assert_eq!(entry(&*store, first).await?.outcome, None);
    assert_eq!(entry(&*store, second).await?.changed, Some(0));
    assert_eq!(store.actions(None, 10).await?.len(), 2);
    Ok(())
}

/// The newest first, each on one page.
pub(in crate::conformance) async fn actions_lists_entries_newest_first_page_by_page<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let mut ids = Vec::new();
    for who in ["a", "b", "c", "d", "e"] {
        ids.insert(0, record(&*store, who).await?);
    }
    for limit in [1, 2, 5, 9] {
        let (mut pages, mut below) = (Vec::new(), None);
        loop {
            let page = store.actions(below, limit).await?;
            assert!(page.len() <= limit, "{page:?}");
            let Some(last) = page.last() else { break };
            below = Some(last.id);
            pages.extend(page.iter().map(|entry| entry.id));
        }
        assert_eq!(pages, ids, "{limit} at a time");
    }
    Ok(())
}

/// The oldest first, and none that is young.
pub(in crate::conformance) async fn purge_actions_deletes_old_entries_batch_by_batch<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    for _ in 0..5 {
        record(&*store, "old").await?;
    }
    assert_eq!(store.purge_actions(Duration::from_secs(1200), 10).await?, 0, "none is old");
    db.age_audit(1800).await?;
    let young = record(&*store, "young").await?;
    for removed in [2, 2, 1, 0] {
        assert_eq!(store.purge_actions(Duration::from_secs(1200), 2).await?, removed);
    }
    let left: Vec<i64> = store.actions(None, 10).await?.iter().map(|entry| entry.id).collect();
    assert_eq!(left, [young]);
    Ok(())
}

async fn record(store: &dyn Store, who: &str) -> Result<i64, BoxError> {
    Ok(store.record_action(&AuditedAction::new(who, "cancel", "all")).await?)
}

async fn entry(store: &dyn Store, id: i64) -> Result<AuditEntry, BoxError> {
    let entries = store.actions(None, 10).await?;
    Ok(entries.into_iter().find(|entry| entry.id == id).ok_or("there is no such entry")?)
}
