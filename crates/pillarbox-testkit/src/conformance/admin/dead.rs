use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE};
use pillarbox_core::row::Change;
use pillarbox_core::store::{Attributes, DeadEvent, DeadFilter};

use crate::Harness;
use crate::events::{HOUR, events, settle_all};
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

    let full = DeadFilter::new().event_type(graves.full.event_type());
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

/// The end is compared exactly, and a text in the error byte by byte: patterns of SQL stand for themselves.
pub(in crate::conformance) async fn dead_is_narrowed_by_time_and_error_text<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let errors = ["timeout after 30 s", "Timeout", "100% of a_b, \\ and 'quotes'", "1000 of aXb", "größer als 5 MB"];
    let seqs = db.write(events(errors.len())?).await?;
    let node = owner(&*store).await?;
    for (seq, error) in seqs.iter().zip(errors) {
        let change = Change::Dead { attempts: 1, error: error.to_owned() };
        settle_all(&*store, &node, &[*seq], &change).await?;
    }

    let error = |text: &str| DeadFilter::new().error_contains(text);
    let with = [
        ("timeout", vec![0]),
        ("Timeout", vec![1]),
        ("imeout", vec![0, 1]),
        ("100%", vec![2]),
        ("a_b", vec![2]),
        ("\\", vec![2]),
        ("'quotes'", vec![2]),
        ("größer", vec![4]),
        ("grosser", vec![]),
        ("timeout ", vec![0]),
        ("Timeout ", vec![]),
        ("%", vec![2]),
        ("a\0b", vec![]),
        ("", vec![0, 1, 2, 3, 4]),
    ];
    for (text, indexes) in with {
        let expected: Vec<i64> = indexes.iter().map(|index: &usize| seqs[*index]).collect();
        assert_eq!(list(db, &error(text), 0, 10).await?, expected, "{text:?}");
        assert_eq!(store.count_dead(&error(text)).await?, expected.len() as u64, "{text:?}");
    }

    let ends: Vec<Timestamp> =
        store.dead(&DeadFilter::new(), 0, 10).await?.iter().filter_map(|dead| dead.dead_at).collect();
    assert_eq!(ends.len(), seqs.len());
    let extremes = [i64::MIN, 0, i64::MAX].map(Timestamp::from_micros);
    for time in ends.iter().copied().chain(extremes) {
        let of = |wanted: &dyn Fn(Timestamp) -> bool| -> Vec<i64> {
            seqs.iter().zip(&ends).filter(|(_, end)| wanted(**end)).map(|(seq, _)| *seq).collect()
        };
        let (since, before) = (DeadFilter::new().since(time), DeadFilter::new().before(time));
        assert_eq!(list(db, &since, 0, 10).await?, of(&|end| end >= time), "since {time}");
        assert_eq!(list(db, &before, 0, 10).await?, of(&|end| end < time), "before {time}");
    }
    let both = error("imeout").since(ends[1]).before(ends[4].plus(HOUR));
    assert_eq!(list(db, &both, 0, 10).await?.last(), Some(&seqs[1]), "everything that is set has to match");
    Ok(())
}

/// Events that another program has made DEAD, as a predecessor has, are found by the time at which they were written.
pub(in crate::conformance) async fn dead_takes_the_creation_where_no_end_is_recorded<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let seqs = db.write(events(2)?).await?;
    db.execute(&format!("UPDATE {} SET status = 3, done_at = NULL", db.table("event"))).await?;
    let all = store.dead(&DeadFilter::new(), 0, 10).await?;
    assert!(all.iter().all(|dead| dead.dead_at.is_none()), "{all:?}");
    let written = all.first().ok_or("two rows are DEAD")?.created_at;
    for (filter, expected) in [
        (DeadFilter::new().since(written).before(written.plus(HOUR)), seqs),
        (DeadFilter::new().since(written.plus(HOUR)), vec![]),
        (DeadFilter::new().before(written), vec![]),
    ] {
        assert_eq!(list(db, &filter, 0, 10).await?, expected, "{filter:?}");
        assert_eq!(store.count_dead(&filter).await?, expected.len() as u64, "{filter:?}");
    }
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
        let filter = |event_type: Option<&str>, aggregate_type: Option<&str>, tenant_id: Option<&str>| {
            let [event_type, aggregate_type, tenant_id] =
                [event_type, aggregate_type, tenant_id].map(|text| text.map(str::to_owned));
            let attributes = Attributes { event_type, aggregate_type, tenant_id, ..Attributes::default() };
            DeadFilter { attributes, ..DeadFilter::default() }
        };
        let of_key = |key: &str| DeadFilter::new().key(key);
        let of = |handler: &str, filter: DeadFilter| filter.handler(handler);
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
            (filter(Some("paid"), None, None).key("42"), rows(&[1, 3])),
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
