use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE};
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{CANCELLED, EventFilter, EventPage, Store};

use crate::Harness;
use crate::events::{HOUR, events, settle_all};
use crate::nodes::owner;
use crate::run::{Db, Outcome};

/// Events of every state, those that match everything that is set, each on one page however small pages are and however few rows a page
/// reads.
pub(in crate::conformance) async fn recent_lists_matching_events_newest_first_page_by_page<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert_eq!(store.recent(&EventFilter::new(), None, 10).await?, EventPage::default(), "an empty table");
    let history = History::write(db).await?;
    for (filter, seqs) in history.filters() {
        for (limit, read_at_most) in [(1000, 10_000), (1, 10_000), (2, 3), (3, 1), (1, 1)] {
            let filter = filter.clone().read_at_most(read_at_most);
            let found = all_pages(&*store, &filter, limit).await?;
            assert_eq!(found, seqs, "{filter:?}, {limit} at a time");
        }
    }
    Ok(())
}

/// A page that finds nothing ends after so many rows, names the place, and the next one goes on there.
pub(in crate::conformance) async fn recent_reads_no_more_rows_than_asked_and_says_where_it_stopped<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let seqs = db.write(events(10)?).await?;
    let created: Vec<Timestamp> =
        store.recent(&EventFilter::new(), None, 10).await?.events.iter().rev().map(|event| event.created_at).collect();
    let node = owner(&*store).await?;
    settle_all(&*store, &node, &seqs[..5], &Change::Done).await?;
    let none = EventFilter::new().error_contains("nobody has said so").read_at_most(4);
    let first = store.recent(&none, None, 3).await?;
    assert_eq!((first.events.len(), first.next, first.searched_back_to), (0, Some(seqs[6]), Some(created[6])));
    let second = store.recent(&none, first.next, 3).await?;
    assert_eq!((second.events.len(), second.next), (0, Some(seqs[2])));
    let last = store.recent(&none, second.next, 3).await?;
    assert_eq!(last, EventPage::default(), "two rows were left");

    let of_state = |status| EventFilter::new().status(status).error_contains("nothing").read_at_most(2);
    let new = store.recent(&of_state(Status::New), None, 3).await?;
    assert_eq!((new.events.len(), new.next), (0, Some(seqs[8])), "the pending rows are read, and no others");
    let later = EventFilter::new().since(created[9].plus(HOUR * 2)).read_at_most(4);
    assert_eq!(store.recent(&later, None, 3).await?, EventPage::default(), "older rows cannot match");
    let full = store.recent(&EventFilter::new().read_at_most(1), None, 3).await?;
    assert_eq!((full.events.len(), full.next), (3, Some(seqs[7])), "no row is passed over");
    Ok(())
}

/// Its state and times, its attempts and their last error; as the record of its row, but for the payload.
pub(in crate::conformance) async fn recent_tells_how_an_event_stands<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, history) = (db.store(), History::write(db).await?);
    let page = store.recent(&EventFilter::new(), None, 100).await?;
    let now = store.now().await?;
    let states: Vec<&str> = page.events.iter().rev().map(|event| event.state(now).name()).collect();
    assert_eq!(states, ["new", "delayed", "done", "retrying", "dead", "cancelled", "new", "done"]);
    for event in &page.events {
        let record = store.record(event.seq).await?.ok_or("the row is there")?;
        assert_eq!(
            (&event.event_id, &event.event_type, event.status),
            (&record.event_id, &record.event_type, record.status)
        );
        assert_eq!(
            (&event.aggregate_id, &event.tenant_id, &event.key),
            (&record.aggregate_id, &record.tenant_id, &record.ordering_key)
        );
        assert_eq!(
            (&event.handler, event.attempts, &event.last_error),
            (&record.handler, record.attempts, &record.last_error)
        );
        assert_eq!((event.created_at, event.done_at), (record.created_at, record.done_at));
        assert_eq!(event.state(now), record.state(now));
    }
    let due: Vec<bool> = page.events.iter().rev().map(|event| event.due_at.is_some()).collect();
    assert_eq!(due, [false, true, false, true, false, false, false, false], "those that wait for a time");
    let first = page.events.last().ok_or("there are events")?;
    assert_eq!((first.event_id.as_str(), first.aggregate_type.as_str()), (history.first.id().as_str(), "order"));
    Ok(())
}

async fn all_pages(store: &dyn Store, filter: &EventFilter, limit: usize) -> Result<Vec<i64>, BoxError> {
    let (mut found, mut below) = (Vec::new(), None);
    loop {
        let page = store.recent(filter, below, limit).await?;
        assert!(
            page.events.len() <= limit && page.events.iter().all(|event| below.is_none_or(|below| event.seq < below))
        );
        assert_eq!(page.next.is_some(), page.searched_back_to.is_some(), "{page:?}");
        found.extend(page.events.iter().map(|event| event.seq));
        let Some(next) = page.next else { return Ok(found) };
        assert!(below.is_none_or(|below| next < below), "it goes on: {page:?}");
        below = Some(next);
    }
}

/// Events of every state: a new one, a delayed one, a delivered one, one that waits for another attempt, a dead one, a cancelled one, one for
/// a handler with a name, and one that a fallback rescued.
struct History {
    seqs: Vec<i64>,
    first: Envelope,
}

impl History {
    async fn write<H: Harness>(db: &Db<H>) -> Result<Self, BoxError> {
        let store = db.store();
        let build = |event_type: &str| Envelope::builder(event_type).payload_json("{}");
        let first = build("placed").aggregate("order", "42").key("k").tenant_id("acme").build()?;
        let named = build("paid").aggregate("order", "k").build()?;
        let events = vec![
            first.clone(),
            build("placed").deliver_after(HOUR).key("k").build()?,
            build("placed").tenant_id("acme ").build()?,
            build("paid").key("other").build()?,
            build("paid").tenant_id("acme").build()?,
            build("placed").build()?,
            named.clone(),
            build("paid").build()?,
        ];
        let seqs = db.write(events).await?;
        db.set_handler(named.id().as_str(), "mailer").await?;
        let node = owner(&*store).await?;
        settle_all(&*store, &node, &seqs[2..3], &Change::Done).await?;
        let retry = Change::Retry { attempts: 1, delay: HOUR, error: Some("100% broker_down".to_owned()) };
        settle_all(&*store, &node, &seqs[3..4], &retry).await?;
        let dead = Change::Dead { attempts: 2, error: "gave up".to_owned() };
        settle_all(&*store, &node, &seqs[4..5], &dead).await?;
        assert_eq!(store.cancel(&seqs[5..6]).await?, seqs[5..6]);
        settle_all(&*store, &node, &seqs[7..8], &Change::Done).await?;
        Ok(Self { seqs, first })
    }

    /// Filters, with the rows that match them.
    fn filters(&self) -> Vec<(EventFilter, Vec<i64>)> {
        let all = EventFilter::new;
        let rows = |indexes: &[usize]| indexes.iter().rev().map(|index| self.seqs[*index]).collect();
        let far = Timestamp::from_micros(4_000_000_000_000_000);
        vec![
            (all(), rows(&[0, 1, 2, 3, 4, 5, 6, 7])),
            (all().event_id(self.first.id().as_str()), rows(&[0])),
            (all().event_id(self.first.id().as_str()).status(Status::Dead), rows(&[])),
            (all().event_id(format!("{} ", self.first.id())), rows(&[])),
            (all().event_id("a\0b"), rows(&[])),
            (all().event_type("placed"), rows(&[0, 1, 2, 5])),
            (all().event_type("placed "), rows(&[])),
            (all().event_type("pl%"), rows(&[])),
            (all().aggregate_type("order"), rows(&[0, 6])),
            (all().aggregate_type(GLOBAL_AGGREGATE).event_type("paid"), rows(&[3, 4, 7])),
            (all().tenant("acme"), rows(&[0, 4])),
            (all().handler("mailer"), rows(&[6])),
            (all().key("k"), rows(&[0, 1, 6])),
            (all().status(Status::New), rows(&[0, 1, 6])),
            (all().status(Status::New).key("k").event_type("placed"), rows(&[0, 1])),
            (all().status(Status::Retry), rows(&[3])),
            (all().status(Status::Done), rows(&[2, 5, 7])),
            (all().status(Status::Dead), rows(&[4])),
            (all().status(Status::Dead).tenant("acme "), rows(&[])),
            (all().error_contains("0% broker_"), rows(&[3])),
            (all().error_contains(CANCELLED).status(Status::Done), rows(&[5])),
            (all().error_contains("%"), rows(&[3])),
            (all().since(far), rows(&[])),
            (all().before(far).tenant("acme"), rows(&[0, 4])),
            (all().before(Timestamp::from_micros(0)), rows(&[])),
            (all().since(far.minus(Duration::from_micros(4_000_000_000_000_000))).tenant("acme"), rows(&[0, 4])),
            (all().event_type("' OR '1'='1"), rows(&[])),
        ]
    }
}
