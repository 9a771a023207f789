use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE};
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Change;
use pillarbox_core::store::{PendingEvent, PendingFilter, PendingState};

use crate::Harness;
use crate::events::{HOUR, claimed, event, retry_in, settle_all, some};
use crate::nodes::{owner, peer};
use crate::run::{Db, Outcome};

/// Pending events and no others, those that match everything that is set, in the order of the table and page by page,
/// whichever kinds of them lie beside each other.
pub(in crate::conformance) async fn pending_lists_matching_events_page_by_page<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert!(store.pending(&PendingFilter::new(), 0, 10).await?.is_empty(), "an empty table");
    let waiting = Waiting::line_up(db).await?;
    for (filter, seqs) in waiting.filters() {
        assert_eq!(list(db, &filter, 0, 1000).await?, seqs, "{filter:?}");
        for limit in [1, 2, 3] {
            let (mut pages, mut above) = (Vec::new(), 0);
            loop {
                let page = list(db, &filter, above, limit).await?;
                assert!(page.len() <= limit && page.iter().all(|seq| *seq > above), "{page:?} above {above}");
                let Some(last) = page.last() else { break };
                above = *last;
                pages.extend(page);
            }
            assert_eq!(pages, seqs, "{filter:?}, {limit} at a time");
        }
    }
    Ok(())
}

/// The number is that of the events a list would show.
pub(in crate::conformance) async fn count_pending_counts_what_pending_lists<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert_eq!(store.count_pending(&PendingFilter::new()).await?, 0, "an empty table");
    let waiting = Waiting::line_up(db).await?;
    for (filter, seqs) in waiting.filters() {
        assert_eq!(store.count_pending(&filter).await?, seqs.len() as u64, "{filter:?}");
    }
    Ok(())
}

/// Its state and due time, its failed attempts and their last error, and the node that holds it.
pub(in crate::conformance) async fn pending_tells_what_an_event_waits_for<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, waiting) = (db.store(), Waiting::line_up(db).await?);
    let all = store.pending(&PendingFilter::new(), 0, 1000).await?;
    let states: Vec<PendingState> = all.iter().map(|pending| pending.state).collect();
    use PendingState::{Delayed, New, Retrying};
    assert_eq!(states, [New, New, Delayed, Retrying, Retrying, New, New]);

    let new = &all[0];
    assert_eq!((new.event_type.as_str(), new.tenant_id.as_deref()), ("placed", Some("acme")));
    assert_eq!((new.aggregate_type.as_str(), new.aggregate_id.as_deref()), ("order", Some("42")));
    assert_eq!((new.key.as_deref(), new.handler.as_deref()), (Some("k"), None));
    assert_eq!((new.attempts, new.last_error.as_deref(), new.due_at), (0, None, None));
    assert_eq!(new.event_id, waiting.first.id().as_str());
    let delay = |pending: &PendingEvent| pending.due_at.map(|due| due.since(pending.created_at));
    let in_an_hour = |delay: Option<Duration>| delay.is_some_and(|delay| delay > HOUR / 2 && delay < 2 * HOUR);
    assert!(in_an_hour(delay(&all[2])), "{:?}", all[2]);
    assert!(in_an_hour(delay(&all[3])), "{:?}", all[3]);
    assert_eq!((all[3].attempts, all[3].last_error.as_deref()), (1, Some("broker down")));
    assert!(delay(&all[4]).is_none_or(|delay| delay < HOUR / 2), "it is due: {:?}", all[4]);
    assert_eq!((all[5].attempts, all[5].last_error.as_deref()), (0, None), "replayed");
    assert!(all.iter().all(|pending| pending.held_by.is_none()), "{all:?}");

    store.leave(&waiting.owner).await?;
    let node = peer(&*store).await?;
    let taken = claimed(&*store, &node, &some(1)).await?;
    assert_eq!(taken.len(), 1);
    for pending in store.pending(&PendingFilter::new(), 0, 1000).await? {
        let holder = taken.contains(&pending.seq).then(|| node.as_str().to_owned());
        assert_eq!(pending.held_by, holder, "{}", pending.seq);
    }
    Ok(())
}

async fn list<H: Harness>(db: &Db<H>, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<i64>, BoxError> {
    Ok(db.store().pending(filter, above, limit).await?.iter().map(|pending: &PendingEvent| pending.seq).collect())
}

/// Pending events of every kind: two new ones, one that is delayed, one that waits for another attempt and one that may be
/// tried again at once, one that was replayed, and one for a handler with a name. Beside them a DONE and a DEAD one.
struct Waiting {
    seqs: Vec<i64>,
    first: Envelope,
    owner: NodeId,
}

impl Waiting {
    async fn line_up<H: Harness>(db: &Db<H>) -> Result<Self, BoxError> {
        let store = db.store();
        let build = |event_type: &str| Envelope::builder(event_type).payload_json("{}");
        let first = build("placed").aggregate("order", "42").key("k").tenant_id("acme").build()?;
        let named = build("paid").aggregate("order", "k").build()?;
        let events = vec![
            first.clone(),
            build("paid").tenant_id("acme ").build()?,
            build("placed").deliver_after(HOUR).key("k").build()?,
            build("placed").key("other").build()?,
            build("paid").tenant_id("acme").build()?,
            event()?,
            named.clone(),
            event()?,
            event()?,
        ];
        let mut seqs = db.write(events).await?;
        db.set_handler(named.id().as_str(), "mailer").await?;
        let node = owner(&*store).await?;
        let failed = Change::Retry { attempts: 1, delay: HOUR, error: Some("broker down".to_owned()) };
        settle_all(&*store, &node, &seqs[3..4], &failed).await?;
        settle_all(&*store, &node, &seqs[4..5], &retry_in(Duration::ZERO)).await?;
        let dead = Change::Dead { attempts: 2, error: "gave up".to_owned() };
        settle_all(&*store, &node, &[seqs[5], seqs[8]], &dead).await?;
        settle_all(&*store, &node, &seqs[7..8], &Change::Done).await?;
        assert_eq!(store.replay(&seqs[5..6]).await?, seqs[5..6]);
        seqs.truncate(7);
        Ok(Self { seqs, first, owner: node })
    }

    /// Filters, with the rows that match them.
    fn filters(&self) -> Vec<(PendingFilter, Vec<i64>)> {
        let all = PendingFilter::new;
        let rows = |indexes: &[usize]| indexes.iter().map(|index| self.seqs[*index]).collect();
        vec![
            (all(), rows(&[0, 1, 2, 3, 4, 5, 6])),
            (all().event_type("placed"), rows(&[0, 2, 3])),
            (all().event_type("placed "), rows(&[])),
            (all().event_type("pl%"), rows(&[])),
            (all().aggregate_type("order"), rows(&[0, 6])),
            (all().aggregate_type(GLOBAL_AGGREGATE).event_type("paid"), rows(&[1, 4])),
            (all().tenant("acme"), rows(&[0, 4])),
            (all().tenant("acme "), rows(&[1])),
            (all().handler("mailer"), rows(&[6])),
            (all().handler("Mailer"), rows(&[])),
            (all().key("k"), rows(&[0, 2, 6])),
            (all().key("a\0b"), rows(&[])),
            (all().state(PendingState::New), rows(&[0, 1, 5, 6])),
            (all().state(PendingState::Delayed), rows(&[2])),
            (all().state(PendingState::Retrying), rows(&[3, 4])),
            (all().state(PendingState::Retrying).tenant("acme"), rows(&[4])),
            (all().event_type("' OR '1'='1"), rows(&[])),
        ]
    }
}
