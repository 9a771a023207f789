use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::inbox::{Once, purge};
use pillarbox_core::store::Store;

use crate::Harness;
use crate::conformance::receive::{inbox, receives};
use crate::run::{Db, Outcome};

/// Old messages are half an hour old; this is how old they have to be.
const OLD: Duration = Duration::from_secs(1200);
const AGE: i64 = 1800;

/// By the bytes of their names, page by page.
pub(in crate::conformance) async fn inbox_consumers_lists_each_with_the_age_of_its_oldest_message<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert_eq!(store.inbox_consumers(None, 10).await?, []);
    for consumer in ["b", "B", "a", "é"] {
        receive(db, consumer, 3).await?;
    }
    db.age_inbox(AGE).await?;
    receive(db, "young", 1).await?;
    receive(db, "a", 4).await?;
    let names = async |after, limit| -> Result<Vec<String>, BoxError> {
        let consumers = store.inbox_consumers(after, limit).await?;
        for consumer in &consumers {
            let is_old = consumer.oldest >= OLD && consumer.oldest < 3 * OLD;
            assert_eq!(is_old, consumer.name != "young", "{consumer:?}");
        }
        Ok(consumers.into_iter().map(|consumer| consumer.name).collect())
    };
    assert_eq!(names(None, 10).await?, ["B", "a", "b", "young", "é"]);
    assert_eq!(names(None, 2).await?, ["B", "a"]);
    assert_eq!(names(Some("a"), 2).await?, ["b", "young"]);
    assert_eq!(names(Some("young"), 2).await?, ["é"]);
    assert_eq!(names(Some("é"), 2).await?, [""; 0]);
    Ok(())
}

pub(in crate::conformance) async fn count_inbox_counts_the_messages_of_a_consumer<H: Harness>(db: &Db<H>) -> Outcome {
    receive(db, "a", 3).await?;
    receive(db, "a ", 2).await?;
    for (consumer, count) in [("a", 3), ("a ", 2), ("A", 0), ("b", 0)] {
        assert_eq!(db.store().count_inbox(consumer).await?, count, "{consumer:?}");
    }
    Ok(())
}

/// They count as never received afterwards.
pub(in crate::conformance) async fn purge_inbox_deletes_old_messages_of_a_consumer_batch_by_batch<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    receive(db, "a", 5).await?;
    db.age_inbox(AGE).await?;
    for removed in [2, 2, 1, 0] {
        assert_eq!(store.purge_inbox("a", OLD, 2).await?, removed);
    }
    assert_eq!(receives(db, &inbox(db, "a")?, "m-0").await?, Once::First);
    assert_eq!(store.purge_inbox("a", Duration::MAX, 10).await?, 0, "nothing is that old");
    assert_eq!(store.purge_inbox("a", Duration::ZERO, 10).await?, 1, "what was received just now");
    Ok(())
}

/// By the consumer too, unless all of them are asked for.
pub(in crate::conformance) async fn purge_inbox_keeps_what_is_young_or_of_others<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    receive(db, "a", 3).await?;
    receive(db, "a ", 3).await?;
    receive(db, "b", 3).await?;
    db.age_inbox(AGE).await?;
    receive(db, "a", 5).await?;
    receive(db, "c", 2).await?;
    assert_eq!(store.purge_inbox("a", OLD, 10).await?, 3);
    assert_eq!(counts(&*store).await?, [2, 3, 3, 2]);
    assert_eq!(inbox(db, "b")?.purge(OLD).await?, 3);
    assert_eq!(counts(&*store).await?, [2, 3, 0, 2]);
    let mut progress = Vec::new();
    assert_eq!(purge(&*store, None, OLD, 2, |removed| progress.push(removed)).await?, 3);
    assert_eq!((counts(&*store).await?, &*progress), ([2, 0, 0, 2], &[2, 3][..]));
    Ok(())
}

/// A consumer receives the messages up to this number; those that it has received before are passed over.
async fn receive<H: Harness>(db: &Db<H>, consumer: &str, messages: usize) -> Outcome {
    let inbox = inbox(db, consumer)?;
    for number in 0..messages {
        let _ = receives(db, &inbox, &format!("m-{number}")).await?;
    }
    Ok(())
}

async fn counts(store: &dyn Store) -> Result<[u64; 4], BoxError> {
    let mut counts = [0; 4];
    for (count, consumer) in counts.iter_mut().zip(["a", "a ", "b", "c"]) {
        *count = store.count_inbox(consumer).await?;
    }
    Ok(counts)
}
