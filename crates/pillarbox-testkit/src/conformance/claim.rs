use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::{Fence, PriorAttempt, begun_by};
use pillarbox_core::row::Change;
use pillarbox_core::store::{Fetch, FetchedRow, Row};
use tokio::time::sleep;

use super::fetch::{broken_between, of_kilobytes, write_around_a_broken_row};
use super::fetch_due::when_due;
use crate::Harness;
use crate::events::{
    HOUR, all, claimed, columns, delayed, event, events, first_attempt, retry_in, seqs_of, settle_held, some,
};
use crate::nodes::{peer, stranger};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// A row that one node has taken says so, and no other node gets it, whichever kind of row it is.
pub(super) async fn claim_takes_each_row_for_one_node<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let (written, timed) = (events(9)?, delayed()?);
    let mut seqs = db.write(written.clone()).await?;
    seqs.extend(db.write(vec![timed.clone()]).await?);
    db.make_due(timed.id().as_str()).await?;
    let [first, second] = [peer(&*store).await?, peer(&*other).await?];

    let taken = store.claim(&first, &some(4)).await?;
    assert_eq!(taken.rows.len(), 4);
    assert!(taken.rows.iter().all(|row| matches!(row, FetchedRow::Row(Row { locked_by: None, .. }))), "{taken:?}");
    let rest = other.claim(&second, &all()).await?;
    assert_eq!(rest.rows.len(), 6, "all that the first node did not take");
    let mut both = [seqs_of(&taken), seqs_of(&rest)].concat();
    both.sort_unstable();
    assert_eq!(both, seqs, "each row once");
    for event in written.iter().chain([&timed]) {
        let row = columns(db, event).await?;
        let holder = if seqs_of(&taken).contains(&row.seq) { &first } else { &second };
        assert_eq!(row.locked_by.as_deref(), Some(holder.as_str()), "row {}", row.seq);
        assert_eq!((row.status, row.attempts, row.last_error), (0, 0, None), "a claim changes nothing else");
    }
    let third = peer(&*store).await?;
    assert!(claimed(&*store, &third, &all()).await?.is_empty());
    Ok(())
}

/// As a fetch does; what is left out is still free.
pub(super) async fn claim_stops_at_the_limit_of_bytes<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [node, other] = [peer(&*store).await?, peer(&*store).await?];
    let seqs = db.write(of_kilobytes(&[10, 10, 900, 10, 10])?).await?;
    let within = |kilobytes: usize| Fetch { max_bytes: kilobytes * 1000, ..some(100) };
    for (kilobytes, expected) in [(1, &seqs[..1]), (5, &seqs[1..2]), (5, &seqs[2..3])] {
        let fetched = store.claim(&node, &Fetch { exclude: seqs[..].to_vec(), ..within(kilobytes) }).await?;
        assert!(fetched.rows.is_empty() && !fetched.truncated, "nothing is left out but what was excluded");
        let taken: Vec<i64> = seqs.iter().copied().filter(|seq| seq < &expected[0]).collect();
        let fetched = store.claim(&node, &Fetch { exclude: taken, ..within(kilobytes) }).await?;
        assert_eq!((&*seqs_of(&fetched), fetched.truncated), (expected, true), "{kilobytes} kB");
    }
    let fetched = store.claim(&other, &within(5000)).await?;
    assert_eq!((&*seqs_of(&fetched), fetched.truncated), (&seqs[3..], false), "the others were left to other nodes");
    Ok(())
}

/// Limit and order are those of a fetch: the lowest `seq`, or the earliest due time, first, and at least a third of each.
pub(super) async fn claim_returns_rows_in_seq_order_and_within_the_limit<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let mut timed = db.write(events(9)?).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, timed);
    // Their due times are in the opposite order, so that they cannot be taken for their `seq`.
    for (seq, delay) in timed.iter().rev().zip(1..) {
        settle_held(&*store, &node, &[*seq], &retry_in(Duration::from_millis(delay * 20))).await?;
    }
    timed.reverse();
    while let Some(wait) = store.fetch(&all()).await?.next_due {
        sleep(wait).await;
    }
    let seqs = db.write(events(60)?).await?;

    let (mut taken_timed, mut taken, mut exclude) = (Vec::new(), Vec::new(), Vec::new());
    for limit in [1, 2, 12, 30, 1000] {
        let fetched = store.claim(&node, &Fetch { exclude: exclude.clone(), ..some(limit) }).await?;
        let due = fetched.rows.iter().filter(|row| row.is_timed()).count();
        let left = 69 - exclude.len();
        assert_eq!(fetched.rows.len(), limit.min(left), "limit {limit}");
        assert!(due >= (limit / 3).min(timed.len() - taken_timed.len()), "{due} of {limit} rows had a due time");
        for row in &fetched.rows {
            if row.is_timed() { taken_timed.push(row.seq()) } else { taken.push(row.seq()) }
        }
        exclude.extend(seqs_of(&fetched));
    }
    assert_eq!((taken, taken_timed), (seqs.clone(), timed));

    // From where a fetch may start, so may a claim.
    store.release(&node, &rows_at(&*store, &seqs).await?).await?;
    let above = Fetch { above: seqs[57], exclude, ..all() };
    assert!(claimed(&*store, &node, &above).await?.is_empty(), "excluded");
    assert_eq!(claimed(&*store, &peer(&*store).await?, &Fetch { exclude: Vec::new(), ..above }).await?, seqs[58..]);
    Ok(())
}

/// Events of some types are left for another claim.
pub(super) async fn claim_leaves_out_event_types<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let seqs = db.write(vec![Envelope::json("held", "{}")?, event()?, Envelope::json("held", "{}")?]).await?;
    db.write(vec![delayed()?]).await?;
    let without_types: Vec<Box<str>> = ["held", "test.delayed", "test.event ", "TEST.EVENT"].map(Into::into).into();
    let fetched = store.claim(&node, &Fetch { without_types, ..all() }).await?;
    assert_eq!((seqs_of(&fetched), fetched.next_due), (vec![seqs[1]], None));
    let fetched = store.claim(&node, &Fetch { exclude: vec![seqs[1]], ..all() }).await?;
    assert_eq!(seqs_of(&fetched), [seqs[0], seqs[2]]);
    assert!(fetched.next_due.is_some());
    Ok(())
}

/// Rows for some handlers are left for another claim.
pub(super) async fn claim_leaves_out_handlers<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let written = events(3)?;
    let seqs = db.write(written.clone()).await?;
    db.set_handler(written[0].id().as_str(), "held").await?;
    db.set_handler(written[1].id().as_str(), "wanted").await?;
    let fetched =
        store.claim(&node, &Fetch { without_handlers: vec!["held".into(), "wanted ".into()], ..all() }).await?;
    assert_eq!(seqs_of(&fetched), seqs[1..]);
    assert_eq!(seqs_of(&store.claim(&node, &Fetch { exclude: seqs[1..].to_vec(), ..all() }).await?), seqs[..1]);
    Ok(())
}

/// A row whose time has not come is nobody's yet; when it will come is known unless the limit was reached.
pub(super) async fn claim_waits_for_the_due_time_and_reports_the_next<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    assert_eq!(store.claim(&node, &all()).await?.next_due, None, "an empty table");
    let (late, plain) = (delayed()?, event()?);
    let seqs = db.write(vec![late.clone(), plain.clone()]).await?;

    let limited = store.claim(&node, &some(1)).await?;
    assert_eq!((seqs_of(&limited), limited.next_due), (vec![seqs[1]], None), "the limit was reached");
    let mine = Fetch { exclude: vec![seqs[1]], ..all() };
    let waiting = store.claim(&node, &mine).await?;
    assert!(waiting.rows.is_empty());
    // An hour by the writer's clock, which may be a little behind the database's.
    assert!(waiting.next_due.is_some_and(|wait| wait > HOUR / 2 && wait < HOUR + HOUR / 2), "{:?}", waiting.next_due);
    assert_eq!(columns(db, &late).await?.locked_by, None);

    db.make_due(late.id().as_str()).await?;
    let due = store.claim(&node, &mine).await?;
    assert_eq!((seqs_of(&due), due.next_due), (vec![seqs[0]], None));
    assert!(due.rows[0].is_timed());
    assert_eq!(columns(db, &late).await?.locked_by.as_deref(), Some(node.as_str()));

    // In real time: it is due when the store says that it will be.
    let soon = Envelope::builder("test.soon").payload_json("{}").deliver_after(Duration::from_millis(200)).build()?;
    let soon_seq = db.write(vec![soon]).await?;
    let mine = Fetch { exclude: seqs, ..all() };
    let claimed = when_due(Duration::from_secs(60), async || store.claim(&node, &mine).await).await?;
    assert_eq!(seqs_of(&claimed), soon_seq);
    Ok(())
}

/// The limit is divided as it is in a fetch.
pub(super) async fn claim_serves_both_kinds_under_load<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let retried = db.write(events(40)?).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?.len(), 40);
    settle_held(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    db.write(events(40)?).await?;
    for limit in [1, 2, 3, 4, 5, 6, 7, 12] {
        let rows = store.claim(&node, &some(limit)).await?.rows;
        let timed = rows.iter().filter(|row| row.is_timed()).count();
        assert_eq!((rows.len(), timed), (limit, limit.div_ceil(3)), "rows, and those of them with a due time");
        store.release(&node, &rows.iter().map(FetchedRow::id).collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// The node has forgotten the rows that it holds and does not exclude, and gets them again; another node does not.
pub(super) async fn claim_takes_back_what_the_node_forgot<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let seqs = db.write(events(5)?).await?;
    let [node, neighbour] = [peer(&*store).await?, peer(&*other).await?];
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    assert!(store.begin_attempt(&node, Fence::Row, &first_attempt(&*store, seqs[4]).await?).await?);

    let known = Fetch { exclude: seqs[..3].to_vec(), ..all() };
    assert!(claimed(&*other, &neighbour, &known).await?.is_empty(), "they are not the neighbour's");
    let forgotten = store.claim(&node, &known).await?;
    assert_eq!(seqs_of(&forgotten), seqs[3..]);
    let said: Vec<_> = forgotten.rows.iter().map(holder_before).collect();
    assert_eq!(said, [Some(node.as_str()), Some(begun_by(&node).as_str())]);
    assert!(said.iter().all(|locked_by| PriorAttempt::read(*locked_by, &node) == PriorAttempt::Clean));
    assert!(claimed(&*other, &neighbour, &all()).await?.is_empty(), "the node holds them still");
    Ok(())
}

/// A node that claims a dead node's row learns that the holder died, and whether it was in the middle of an attempt.
pub(super) async fn claim_tells_of_a_holder_that_died<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let [dead, heir] = [peer(&*store).await?, peer(&*store).await?];
    assert_eq!(claimed(&*store, &dead, &some(2)).await?, seqs[..2]);
    assert!(store.begin_attempt(&dead, Fence::Row, &first_attempt(&*store, seqs[1]).await?).await?);
    db.expire(&dead).await?;
    assert_eq!(store.reclaim(&heir, false).await?.freed, 2);

    let inherited = store.claim(&heir, &all()).await?;
    assert_eq!(seqs_of(&inherited), seqs);
    let pasts: Vec<_> = inherited.rows.iter().map(|row| PriorAttempt::read(holder_before(row), &heir)).collect();
    assert_eq!(pasts, [PriorAttempt::Suspect, PriorAttempt::Crashed, PriorAttempt::Clean]);
    // What is known of the attempt that never ended is kept until it is counted, whatever becomes of the heir.
    for (event, holder) in written.iter().zip([heir.to_string(), begun_by(&heir), heir.to_string()]) {
        assert_eq!(columns(db, event).await?.locked_by, Some(holder));
    }
    Ok(())
}

/// Neither a node that never joined, nor one that has left or was evicted, takes a row.
pub(super) async fn claim_by_an_unregistered_node_takes_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), event()?);
    let seqs = db.write(vec![written.clone()]).await?;
    let [left, cleared, living] = [peer(&*store).await?, peer(&*store).await?, peer(&*store).await?];
    store.leave(&left).await?;
    db.expire(&cleared).await?;
    assert!(store.reclaim(&living, false).await?.registered);
    for (who, node) in [("a stranger", stranger()?), ("one that left", left), ("one that was cleared", cleared)] {
        assert!(claimed(&*store, &node, &all()).await?.is_empty(), "{who}");
        assert_eq!(columns(db, &written).await?.locked_by, None, "{who}");
    }
    assert_eq!(claimed(&*store, &living, &all()).await?, seqs);
    Ok(())
}

/// A row that makes no event is taken like its neighbours, with its reason, and can be settled by its holder alone.
pub(super) async fn claim_hands_over_an_undecodable_row_beside_the_others<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [node, neighbour] = [peer(&*store).await?, peer(&*store).await?];
    let around = write_around_a_broken_row(db).await?;
    let fetched = store.claim(&node, &all()).await?;
    let broken = broken_between(around, &fetched)?;
    assert!(claimed(&*store, &neighbour, &all()).await?.is_empty(), "all three are taken");

    let dead = Change::Dead { attempts: 0, error: broken.reason.clone() };
    assert!(settle_held(&*store, &neighbour, &[broken.seq], &dead).await.is_err(), "it is not the neighbour's");
    settle_held(&*store, &node, &[broken.seq], &dead).await?;
    assert_eq!(store.counts().await?.dead, 1);
    Ok(())
}

/// The holder that the column named before the claim.
fn holder_before(row: &FetchedRow) -> Option<&str> {
    match row {
        FetchedRow::Row(row) => row.locked_by.as_deref(),
        FetchedRow::Broken(_) => None,
    }
}
