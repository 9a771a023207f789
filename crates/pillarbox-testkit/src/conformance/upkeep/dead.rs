use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE};
use pillarbox_core::row::Change;
use pillarbox_core::store::{DeadEvent, DeadFilter};

use crate::Harness;
use crate::events::{HOUR, settle_all};
use crate::nodes::owner;
use crate::payloads::every_column;
use crate::run::{Db, Outcome};

/// DEAD events and no others, those that match everything that is set, in the order of the table and page by page, with
/// all that helps to decide about them.
pub(in crate::conformance) async fn dead_lists_matching_events_page_by_page<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert!(store.dead(&DeadFilter::default(), 0, 10).await?.is_empty(), "an empty table");
    let graves = Graves::dig(db).await?;
    for (filter, seqs) in graves.filters() {
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

    let full = DeadFilter { event_type: Some(graves.full.event_type().to_owned()), ..DeadFilter::default() };
    let [dead] = &store.dead(&full, 0, 10).await?[..] else { return Err("exactly one event has this type".into()) };
    let event = &graves.full;
    assert_eq!((dead.event_id.as_str(), dead.event_type.as_str()), (event.id().as_str(), event.event_type()));
    assert_eq!(
        (dead.aggregate_type.as_str(), dead.aggregate_id.as_deref()),
        (event.aggregate_type(), event.aggregate_id())
    );
    assert_eq!((dead.tenant_id.as_deref(), dead.key.as_deref()), (event.tenant_id(), event.key()));
    assert_eq!((dead.attempts, dead.last_error.as_deref()), (2, Some("gave up")));
    assert!(dead.dead_at.is_some_and(|at| at >= dead.created_at && at.since(dead.created_at) < HOUR), "{dead:?}");
    Ok(())
}

/// The number is that of the events a list would show.
pub(in crate::conformance) async fn count_dead_counts_what_dead_lists<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert_eq!(store.count_dead(&DeadFilter::default()).await?, 0, "an empty table");
    let graves = Graves::dig(db).await?;
    for (filter, seqs) in graves.filters() {
        assert_eq!(store.count_dead(&filter).await?, seqs.len() as u64, "{filter:?}");
    }
    Ok(())
}

async fn list<H: Harness>(db: &Db<H>, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<i64>, BoxError> {
    Ok(db.store().dead(filter, above, limit).await?.iter().map(|dead: &DeadEvent| dead.seq).collect())
}

/// DEAD events of two types, aggregate types and tenants, two of them for handlers that have names, one of them all by
/// itself, and one that names nothing; beside them events of the same kinds that are not DEAD.
struct Graves {
    seqs: Vec<i64>,
    full: Envelope,
}

impl Graves {
    async fn dig<H: Harness>(db: &Db<H>) -> Result<Self, BoxError> {
        let store = db.store();
        let build = |event_type: &str, aggregate: Option<&str>, tenant: Option<&str>| {
            let mut builder = Envelope::builder(event_type).payload_json("{}");
            if let Some(aggregate) = aggregate {
                builder = builder.aggregate(aggregate, "42");
            }
            if let Some(tenant) = tenant {
                builder = builder.tenant_id(tenant);
            }
            builder.build()
        };
        let kinds = || {
            Ok::<_, BoxError>(vec![
                build("placed", Some("order"), Some("acme"))?,
                build("paid", Some("order"), Some("globex"))?,
                build("placed", None, Some("acme"))?,
                build("paid", Some("invoice"), None)?,
                build("placed", Some("order"), None)?,
            ])
        };
        let full = every_column()?;
        db.write(kinds()?).await?;
        let doomed = kinds()?;
        let mut seqs = db.write([doomed.clone(), vec![full.clone()]].concat()).await?;
        db.insert_three_columns("names-nothing", "placed", "{}").await?;
        let names_nothing = db.columns("names-nothing").await?.ok_or("the row of three columns is missing")?;
        seqs.push(names_nothing.seq);
        let last_kinds = kinds()?;
        let last = db.write(last_kinds.clone()).await?;
        for (event, handler) in [(&doomed[0], "mailer"), (&doomed[4], "ledger"), (&last_kinds[0], "mailer")] {
            db.set_handler(event.id().as_str(), handler).await?;
        }

        let node = owner(&*store).await?;
        settle_all(&*store, &node, &seqs, &Change::Dead { attempts: 2, error: "gave up".to_owned() }).await?;
        settle_all(&*store, &node, &last[..2], &Change::Done).await?;
        let retry = Change::Retry { attempts: 1, delay: HOUR, error: Some("gave up".to_owned()) };
        settle_all(&*store, &node, &last[2..4], &retry).await?;
        store.leave(&node).await?;
        assert_eq!(seqs.len(), 7);
        Ok(Self { seqs, full })
    }

    /// Filters, with the rows that match them.
    fn filters(&self) -> Vec<(DeadFilter, Vec<i64>)> {
        let filter = |event_type: Option<&str>, aggregate_type: Option<&str>, tenant_id: Option<&str>| DeadFilter {
            event_type: event_type.map(str::to_owned),
            aggregate_type: aggregate_type.map(str::to_owned),
            tenant_id: tenant_id.map(str::to_owned),
            ..DeadFilter::default()
        };
        let of_key = |key: &str| DeadFilter { key: Some(key.to_owned()), ..DeadFilter::default() };
        let of = |handler: &str, filter| DeadFilter { handler: Some(handler.to_owned()), ..filter };
        let rows = |indexes: &[usize]| indexes.iter().map(|index| self.seqs[*index]).collect();
        vec![
            (filter(None, None, None), rows(&[0, 1, 2, 3, 4, 5, 6])),
            (filter(Some("placed"), None, None), rows(&[0, 2, 4, 6])),
            (filter(None, Some("order"), None), rows(&[0, 1, 4])),
            (filter(None, Some(GLOBAL_AGGREGATE), None), rows(&[2, 6])),
            (filter(None, None, Some("acme")), rows(&[0, 2])),
            (filter(Some("placed"), Some("order"), None), rows(&[0, 4])),
            (filter(Some("placed"), Some("order"), Some("acme")), rows(&[0])),
            (filter(Some("paid"), Some(GLOBAL_AGGREGATE), None), rows(&[])),
            (filter(None, None, Some("acm%")), rows(&[])),
            (filter(Some("' OR '1'='1"), None, None), rows(&[])),
            (of("mailer", DeadFilter::default()), rows(&[0])),
            (of("ledger", filter(Some("placed"), Some("order"), None)), rows(&[4])),
            (of("ledger", filter(None, None, Some("acme"))), rows(&[])),
            (of("Mailer", DeadFilter::default()), rows(&[])),
            (of("' OR '1'='1", DeadFilter::default()), rows(&[])),
            (of_key("42"), rows(&[0, 1, 3, 4])),
            (of_key(self.full.key().unwrap_or_default()), rows(&[5])),
            (DeadFilter { key: Some("42".to_owned()), ..filter(Some("paid"), None, None) }, rows(&[1, 3])),
            (of_key("' OR '1'='1"), rows(&[])),
            // What is asked for is another name, though some collations say that it is the same.
            (filter(Some("placed "), None, None), rows(&[])),
            (filter(None, Some("order "), None), rows(&[])),
            (filter(None, None, Some("acme ")), rows(&[])),
            (of("mailer ", DeadFilter::default()), rows(&[])),
            (of_key("42 "), rows(&[])),
        ]
    }
}
