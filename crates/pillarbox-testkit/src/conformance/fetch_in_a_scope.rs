use std::collections::BTreeSet;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::{NodeId, Renewal};
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{Admin as _, Fetch, FetchScope, Heads, OrderKey, Purge, Purgeable, Row, Store};

use crate::Harness;
use crate::events::{
    HOUR, Owned, all, decoded, event, events, everything, keyed, keyed_each, order_key, owned, retry_in, seq_of,
    seqs_of, settle_all, some, untimed, within,
};
use crate::nodes::{owner, stranger};
use crate::run::{Db, Outcome};

/// Rows of the partitions from the first to the last, both included, and rows without one; those with a due time and
/// those without. Everything else about a fetch holds within them.
pub(super) async fn fetch_in_a_scope_returns_its_partitions_and_rows_without_one<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    // Of the partitions 33, 159, 189, 22, 123 and 220, each twice, and of whichever the ids fall into.
    let keys = ["order-1", "order-2", "order-123", "user-456", "payment:0", "550e8400-e29b-41d4-a716-446655440000"];
    let written = [keyed_each(&keys)?, events(20)?, keyed_each(&keys)?].concat();
    let seqs = db.write(written.clone()).await?;
    db.insert_three_columns("unstamped", "test.event", "{}").await?;
    let unstamped = seq_of(db, "unstamped").await?;
    settle_all(&*store, &node, &seqs[..10], &retry_in(Duration::ZERO)).await?;

    for partitions in [0..=255, 0..=127, 128..=255, 33..=33, 34..=158, 22..=159, 0..=0] {
        let rows = rows(&*store, &within(FetchScope { partitions: partitions.clone(), ..everything() })).await?;
        let is_in = |event: &&Envelope| partitions.contains(&event.partition());
        let mut expected: BTreeSet<_> = written.iter().filter(is_in).map(|event| event.id().as_str()).collect();
        expected.insert("unstamped");
        assert_eq!(rows.len(), expected.len(), "{partitions:?}");
        assert_eq!(rows.iter().map(|row| row.event.id().as_str()).collect::<BTreeSet<_>>(), expected, "{partitions:?}");
        for row in &rows {
            let event = written.iter().find(|event| event.id() == row.event.id());
            assert_eq!(row.partition, event.map(Envelope::partition), "{}", row.event.id());
            assert_eq!(row.status, if seqs[..10].contains(&row.seq) { Status::Retry } else { Status::New });
        }
        assert!(rows.iter().filter(|row| !row.timed).is_sorted_by_key(|row| row.seq), "{partitions:?}");
    }

    // Of 33 to 159 there are the keys "order-1", "order-2" and "payment:0", and some without a key.
    let scope = || Some(FetchScope { partitions: 33..=159, ..everything() });
    let ready = untimed(&store.fetch(&Fetch { scope: scope(), ..all() }).await?);
    assert_eq!(ready.last(), Some(&unstamped));
    let above = store.fetch(&Fetch { above: ready[0], exclude: vec![unstamped], scope: scope(), ..all() }).await?;
    assert_eq!(untimed(&above), ready[1..ready.len() - 1]);
    for limit in [1, 2, 3, 5] {
        assert_eq!(store.fetch(&Fetch { scope: scope(), ..some(limit) }).await?.rows.len(), limit);
    }

    let wait = async |partitions| {
        Ok::<_, BoxError>(store.fetch(&within(FetchScope { partitions, ..everything() })).await?.next_due)
    };
    settle_all(&*store, &node, &seqs[26..27], &retry_in(HOUR)).await?;
    assert!(wait(33..=33).await?.is_some_and(|wait| wait > HOUR / 2), "a row of partition 33 waits for its time");
    assert_eq!(wait(34..=255).await?, None, "no other does");
    Ok(())
}

/// While an event of a key waits for another attempt, the later ones of its key and handler are passed over, and only
/// those: not the earlier ones, not those of other keys and handlers, nor those without a key.
pub(super) async fn fetch_in_a_scope_leaves_out_what_waits_behind_a_failing_head<H: Harness>(db: &Db<H>) -> Outcome {
    // Keys that differ in case or in a space at the end are not equal.
    let written = keyed_each(&["order-1", "order-1", "order-1", "order-2", "Order-1", "order-1 "])?;
    let Owned { store, node, written, seqs } = owned(db, written).await?;
    let [earlier, head, behind, others @ ..] = &seqs[..] else { return Err("six rows were written".into()) };
    let keyless = db.write(events(2)?).await?;
    let late = Envelope::builder("test.late").key("order-1").payload_json("{}").deliver_after(HOUR).build()?;
    let late_seq = db.write(vec![late.clone()]).await?[0];
    db.make_due(late.id().as_str()).await?;
    // An aggregate id is a key only where there is no ordering key.
    let aggregate = Envelope::builder("test.event").aggregate("order", "order-1").payload_json("{}");
    let of_order_1 = db.write(vec![aggregate.build()?]).await?;
    let aggregate = Envelope::builder("test.event").aggregate("order", "order-1").key("shop").payload_json("{}");
    let of_shop = db.write(vec![aggregate.build()?]).await?;
    db.insert_of_aggregate("foreign", "order-1").await?;
    let mail = keyed_each(&["order-1", "order-1"])?;
    let mail_seqs = db.write(mail.clone()).await?;
    for event in &mail {
        db.set_handler(event.id().as_str(), "mail").await?;
    }

    let found = async |heads| found(&*store, FetchScope { heads, ..everything() }).await;
    let every = found(Heads::None).await?;
    assert_eq!(every.len(), 14);
    assert_eq!(found(Heads::Retry).await?, every, "none has failed");

    settle_all(&*store, &node, &[*head, keyless[0]], &retry_in(HOUR)).await?;
    let free: BTreeSet<i64> =
        [&[*earlier][..], others, &keyless[1..], &of_shop, &mail_seqs].concat().into_iter().collect();
    assert_eq!(found(Heads::Retry).await?, free);
    assert_eq!(found(Heads::RetryAndDead).await?, free);
    let foreign = seq_of(db, "foreign").await?;
    let behind: BTreeSet<i64> = [*behind, late_seq, of_order_1[0], foreign].into();
    assert_eq!(found(Heads::None).await?, &free | &behind, "nothing waits for what is not due");

    // The head itself comes when it is due, alone, and again after it was held in its place.
    db.make_due(written[1].id().as_str()).await?;
    assert_eq!(found(Heads::Retry).await?, &free | &[*head].into());
    settle_all(&*store, &node, &mail_seqs[..1], &Change::RetryInPlace { attempts: 0, error: "no".to_owned() }).await?;
    let without_second_mail = &(&free | &[*head].into()) - &[mail_seqs[1]].into();
    assert_eq!(found(Heads::Retry).await?, without_second_mail, "the other handler's head holds up its own");

    // A row that is behind one head and is one itself.
    settle_all(&*store, &node, &[of_order_1[0]], &retry_in(Duration::ZERO)).await?;
    assert_eq!(found(Heads::Retry).await?, without_second_mail);
    settle_all(&*store, &node, &[*head, mail_seqs[0]], &Change::Done).await?;
    let after = &(&free | &behind) - &[foreign, mail_seqs[0]].into();
    assert_eq!(found(Heads::Retry).await?, after, "it waits for the next head");

    // A foreign row can be the head of others, which know their partition.
    settle_all(&*store, &node, &[of_order_1[0]], &Change::Done).await?;
    settle_all(&*store, &node, &[foreign], &retry_in(HOUR)).await?;
    let last = db.write(vec![keyed("order-1")?]).await?[0];
    assert!(!found(Heads::Retry).await?.contains(&last) && found(Heads::None).await?.contains(&last));

    // However many are passed over, the limit is filled with others.
    settle_all(&*store, &node, &others[..1], &retry_in(HOUR)).await?;
    db.write(std::iter::repeat_with(|| keyed("order-2")).take(2_000).collect::<Result<_, _>>()?).await?;
    let next = db.write(keyed_each(&["user-456"; 5])?).await?;
    let scope = Some(FetchScope { heads: Heads::Retry, ..everything() });
    let fetched = store.fetch(&Fetch { above: last, scope, ..some(5) }).await?;
    let ready = untimed(&fetched);
    assert_eq!((fetched.rows.len(), &ready[..]), (5, &next[..ready.len()]), "at least three have no due time");
    Ok(())
}

/// A DEAD event holds up its key only where that is asked for, until it is replayed or discarded.
pub(super) async fn fetch_in_a_scope_waits_behind_dead_heads_if_asked<H: Harness>(db: &Db<H>) -> Outcome {
    let written = keyed_each(&["order-1", "order-1", "order-2", "order-2", "order-2", "user-456", "user-456"])?;
    let Owned { store, node, written, seqs } = owned(db, written).await?;
    db.set_handler(written[6].id().as_str(), "mail").await?;
    let keyless = db.write(vec![event()?, event()?]).await?;
    let dead = Change::Dead { attempts: 1, error: "gave up".to_owned() };
    settle_all(&*store, &node, &[seqs[0], seqs[3], seqs[5], keyless[0]], &dead).await?;

    let found = async |heads| found(&*store, FetchScope { heads, ..everything() }).await;
    let pending = BTreeSet::from([seqs[1], seqs[2], seqs[4], seqs[6], keyless[1]]);
    assert_eq!(found(Heads::None).await?, pending);
    assert_eq!(found(Heads::Retry).await?, pending, "a DEAD event is over");
    let free = BTreeSet::from([seqs[2], seqs[6], keyless[1]]);
    assert_eq!(found(Heads::RetryAndDead).await?, free);

    // Behind one of each kind a row waits for both.
    settle_all(&*store, &node, &seqs[2..3], &retry_in(HOUR)).await?;
    assert_eq!(found(Heads::Retry).await?, BTreeSet::from([seqs[1], seqs[6], keyless[1]]));
    assert_eq!(found(Heads::RetryAndDead).await?, BTreeSet::from([seqs[6], keyless[1]]));
    settle_all(&*store, &node, &seqs[2..3], &Change::Done).await?;
    assert_eq!(found(Heads::Retry).await?, BTreeSet::from([seqs[1], seqs[4], seqs[6], keyless[1]]));
    assert_eq!(found(Heads::RetryAndDead).await?, BTreeSet::from([seqs[6], keyless[1]]));

    assert_eq!(store.replay(&seqs[..1]).await?, seqs[..1]);
    assert_eq!(store.discard(&seqs[3..4]).await?, seqs[3..4]);
    let all = BTreeSet::from([seqs[0], seqs[1], seqs[4], seqs[6], keyless[1]]);
    assert_eq!(found(Heads::RetryAndDead).await?, all);
    Ok(())
}

/// Keys are left out, or read alone, each for one handler; rows without a key are left out by no key and belong to none.
pub(super) async fn fetch_in_a_scope_leaves_out_keys_or_reads_some_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let odd = r#"o'b"r\n; -- {event} $1 ? ключ"#;
    let written = keyed_each(&["order-1", "order-1", "order-2", odd, odd, "Order-1", "order-1 "])?;
    let Owned { store, node, written, seqs } = owned(db, written).await?;
    for event in [&written[1], &written[4]] {
        db.set_handler(event.id().as_str(), "it's mail").await?;
    }
    let keyless = db.write(vec![event()?]).await?[0];
    db.insert_of_aggregate("foreign", "order-1").await?;
    let foreign = seq_of(db, "foreign").await?;
    settle_all(&*store, &node, &seqs[..1], &retry_in(Duration::ZERO)).await?;
    let every: BTreeSet<i64> = seqs.iter().copied().chain([keyless, foreign]).collect();

    let (order_1, order_1_mail) = (order_key(None, "order-1"), order_key(Some("it's mail"), "order-1"));
    let (odd_one, odd_mail) = (order_key(None, odd), order_key(Some("it's mail"), odd));
    let left_out = async |without: &[&OrderKey]| {
        let without = without.iter().copied().cloned().collect();
        let rest = found(&*store, FetchScope { without, ..everything() }).await?;
        Ok::<_, BoxError>(&every - &rest)
    };
    assert_eq!(left_out(&[]).await?, [].into());
    assert_eq!(left_out(&[&order_1]).await?, [seqs[0], foreign].into());
    assert_eq!(left_out(&[&order_1_mail]).await?, [seqs[1]].into());
    assert_eq!(left_out(&[&odd_one, &order_1]).await?, [seqs[0], seqs[3], foreign].into());
    // The pairs count: not any of these handlers with any of these keys.
    assert_eq!(left_out(&[&odd_mail, &order_1]).await?, [seqs[0], seqs[4], foreign].into());
    let unknown = [order_key(Some("other"), "order-1"), order_key(None, "foreign"), order_key(None, "test.event")];
    assert_eq!(left_out(&unknown.iter().collect::<Vec<_>>()).await?, [].into());
    let many: Vec<OrderKey> = (0..2_000).map(|number| order_key(None, &format!("order-{number}"))).collect();
    let many: Vec<&OrderKey> = many.iter().chain([&odd_mail]).collect();
    assert_eq!(left_out(&many).await?, [seqs[0], seqs[2], seqs[4], foreign].into());

    let alone = async |only: &[&OrderKey], heads| {
        let only = only.iter().copied().cloned().collect();
        found(&*store, FetchScope { only, heads, ..everything() }).await
    };
    assert_eq!(alone(&[], Heads::None).await?, every, "none in particular");
    assert_eq!(alone(&[&order_1], Heads::None).await?, [seqs[0], foreign].into());
    assert_eq!(alone(&[&order_1], Heads::Retry).await?, [seqs[0]].into(), "the other waits behind it");
    assert_eq!(alone(&[&order_1_mail], Heads::Retry).await?, [seqs[1]].into());
    assert_eq!(alone(&[&odd_one], Heads::Retry).await?, [seqs[3]].into());
    assert_eq!(alone(&[&odd_mail], Heads::RetryAndDead).await?, [seqs[4]].into());
    assert_eq!(alone(&[&unknown[0]], Heads::None).await?, [].into());
    assert_eq!(alone(&[&odd_one, &order_1], Heads::None).await?, [seqs[0], seqs[3], foreign].into());
    assert_eq!(alone(&[&odd_mail, &order_1], Heads::Retry).await?, [seqs[0], seqs[4]].into(), "the pairs count");
    assert_eq!(alone(&unknown.iter().collect::<Vec<_>>(), Heads::None).await?, [].into());
    assert_eq!(alone(&many, Heads::None).await?, [seqs[0], seqs[2], seqs[4], foreign].into());
    let both = vec![order_1.clone(), odd_one.clone()];
    let scope = FetchScope { partitions: 0..=32, only: both.clone(), ..everything() };
    let within: BTreeSet<i64> = found(&*store, scope).await?;
    let odd_seq = (0..=32).contains(&written[3].partition()).then_some(seqs[3]);
    assert_eq!(within, odd_seq.into_iter().chain([foreign]).collect(), "within the partitions");
    let scope = FetchScope { without: vec![order_1], only: both, ..everything() };
    assert_eq!(found(&*store, scope).await?, [seqs[3]].into(), "both hold");

    // In the order of the table, whichever key they are of, up to the limit.
    let more = db.write(keyed_each(&["order-2", odd, "user-456", odd, "order-2", odd])?).await?;
    let scope = FetchScope { only: vec![odd_one, order_key(None, "order-2")], ..everything() };
    for (above, exclude, limit, expected) in [
        (0, vec![], 10, vec![seqs[2], seqs[3], more[0], more[1], more[3], more[4], more[5]]),
        (0, vec![seqs[3], more[1]], 3, vec![seqs[2], more[0], more[3]]),
        (more[1], vec![], 2, vec![more[3], more[4]]),
    ] {
        let fetched = store.fetch(&Fetch { above, exclude, limit, scope: Some(scope.clone()), ..all() }).await?;
        assert_eq!(seqs_of(&fetched), expected);
    }
    Ok(())
}

/// Every change of DEAD rows by an operator, and nothing else, raises the number that a fetch brings along.
pub(super) async fn fetch_in_a_scope_counts_interventions<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs, .. } = owned(db, keyed_each(&["a"; 8])?).await?;
    settle_all(&*store, &node, &seqs[..6], &Change::Dead { attempts: 1, error: "broken".to_owned() }).await?;
    let interventions = async || Ok::<_, BoxError>(store.fetch(&within(everything())).await?.interventions);
    let purge = async |what| store.purge(&Purge::new(what, Duration::ZERO, 100)).await.map(|purged| purged.removed);
    let before = interventions().await?;
    assert_eq!(store.replay(&seqs[..2]).await?, seqs[..2]);
    assert_eq!(interventions().await?, before + 1, "one for both");
    assert_eq!(store.discard(&seqs[2..3]).await?, seqs[2..3]);
    assert_eq!(interventions().await?, before + 2);
    assert_eq!(purge(Purgeable::Dead).await?, 3);
    assert_eq!(interventions().await?, before + 3);

    settle_all(&*store, &node, &seqs[..1], &Change::Done).await?;
    assert_eq!(purge(Purgeable::Done).await?, 1);
    assert_eq!(store.replay(&seqs).await?, [0; 0]);
    assert_eq!(store.discard(&seqs).await?, [0; 0]);
    assert_eq!(purge(Purgeable::Dead).await?, 0);
    assert_eq!(interventions().await?, before + 3, "nothing that was DEAD changed");
    assert_eq!(store.fetch(&all()).await?.interventions, 0, "without a scope");
    Ok(())
}

/// As long as a row is RETRY or DEAD, a fetch that asks what makes rows wait says so, whatever rows it returns.
pub(super) async fn fetch_in_a_scope_says_whether_there_are_heads<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs, .. } = owned(db, keyed_each(&["a", "b", "c"])?).await?;
    let heads =
        async |heads| Ok::<_, BoxError>(store.fetch(&within(FetchScope { heads, ..everything() })).await?.has_heads);
    let both = async || Ok::<_, BoxError>((heads(Heads::Retry).await?, heads(Heads::RetryAndDead).await?));
    assert_eq!(both().await?, (false, false));
    settle_all(&*store, &node, &seqs[..1], &retry_in(HOUR)).await?;
    assert_eq!(both().await?, (true, true));
    assert!(!heads(Heads::None).await?, "it was not asked");
    assert!(!store.fetch(&all()).await?.has_heads, "without a scope");
    settle_all(&*store, &node, &seqs[..1], &Change::Dead { attempts: 1, error: "broken".to_owned() }).await?;
    assert!(heads(Heads::RetryAndDead).await?);
    store.replay(&seqs[..1]).await?;
    settle_all(&*store, &node, &seqs, &Change::Done).await?;
    assert_eq!(both().await?, (false, false));
    Ok(())
}

/// The `seq` of all due rows in a scope, each of which comes once.
async fn found(store: &dyn Store, scope: FetchScope) -> Result<BTreeSet<i64>, BoxError> {
    let seqs = seqs_of(&store.fetch(&within(scope)).await?);
    let distinct: BTreeSet<i64> = seqs.iter().copied().collect();
    if distinct.len() == seqs.len() { Ok(distinct) } else { Err(format!("a row came twice: {seqs:?}").into()) }
}

async fn rows(store: &dyn Store, fetch: &Fetch) -> Result<Vec<Row>, BoxError> {
    store.fetch(fetch).await?.rows.iter().map(|row| Ok(decoded(row)?.clone())).collect()
}

/// The mark that the reader's last renewal left comes with the rows; nothing, where nobody asks or nobody is registered.
pub(super) async fn fetch_in_a_scope_tells_the_state_of_the_nodes_row<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    db.write(events(2)?).await?;
    let fetch = async |node: Option<NodeId>| {
        let fetched = store.fetch(&within(FetchScope { node, ..everything() })).await?;
        assert_eq!(fetched.rows.len(), 2);
        Ok::<_, BoxError>(fetched.lease)
    };
    assert_eq!((fetch(None).await?, fetch(Some(stranger()?)).await?), (None, None));
    assert!(fetch(Some(node.clone())).await?.is_some(), "joining leaves one as well");
    for _ in 0..2 {
        let Renewal::Renewed { mark } = store.renew(&node, HOUR, None, None).await? else {
            return Err("the lease should be renewed".into());
        };
        assert_eq!(fetch(Some(node.clone())).await?, Some(mark));
    }
    Ok(())
}
