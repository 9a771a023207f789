use std::collections::BTreeSet;
use std::time::Duration;

use pillarbox_core::ownership::{Fence, Partitions};
use pillarbox_core::row::Change;

use crate::Harness;
use crate::events::{
    HOUR, Owned, all, claimed, columns, delayed, event, events, owned, seqs_of, settle, settle_all, verdict,
};
use crate::nodes::{owner, peer, rebalance, rebalancer, stranger};
use crate::payloads::hard_payloads;
use crate::run::{Db, Outcome};

/// DONE ends the row: status, time, no error; the attempts stay as they were.
pub(super) async fn settle_done_is_terminal_and_clears_the_error<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(2)?).await?;
    let failed = Change::Retry { attempts: 1, delay: Duration::ZERO, error: Some("first try".to_owned()) };
    assert!(settle(&*store, &node, Fence::Table, &[verdict(seqs[0], 0, failed)]).await?.is_empty());

    let both = [verdict(seqs[0], 1, Change::Done), verdict(seqs[1], 0, Change::Done)];
    assert!(settle(&*store, &node, Fence::Table, &both).await?.is_empty());
    for (event, attempts) in written.iter().zip([1, 0]) {
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts, row.ended, row.last_error), (1, attempts, true, None));
    }
    assert!(store.fetch(&all()).await?.rows.is_empty());
    Ok(())
}

/// RETRY sets what the verdict says, leaves the error alone if it names none, and makes the row wait for its time.
pub(super) async fn settle_retry_sets_attempts_error_and_due_time<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), event()?);
    let node = owner(&*store).await?;
    let seq = db.write(vec![written.clone()]).await?[0];
    let retry =
        |attempts, delay, error: Option<&str>| Change::Retry { attempts, delay, error: error.map(str::to_owned) };

    let first = verdict(seq, 0, retry(1, HOUR, Some("mail server is down")));
    assert!(settle(&*store, &node, Fence::Table, &[first]).await?.is_empty());
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts, row.timed, row.ended), (2, 1, true, false));
    assert_eq!(row.last_error.as_deref(), Some("mail server is down"));
    let fetched = store.fetch(&all()).await?;
    assert!(fetched.rows.is_empty());
    assert!(fetched.next_due.is_some_and(|wait| wait > HOUR / 2 && wait <= HOUR), "{:?}", fetched.next_due);

    let deferred = verdict(seq, 1, retry(1, Duration::ZERO, None));
    assert!(settle(&*store, &node, Fence::Table, &[deferred]).await?.is_empty());
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts), (2, 1), "an attempt that did not fail is not counted");
    assert_eq!(row.last_error.as_deref(), Some("mail server is down"));
    let fetched = store.fetch(&all()).await?;
    assert!(fetched.rows.len() == 1 && fetched.rows[0].is_timed(), "it is due at once: {:?}", fetched.rows);

    let again = verdict(seq, 1, retry(2, HOUR, Some("mailbox is full")));
    assert!(settle(&*store, &node, Fence::Table, &[again]).await?.is_empty());
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (2, 2, Some("mailbox is full")));
    Ok(())
}

/// DEAD ends the row, with the attempts and the error that the verdict gives.
pub(super) async fn settle_dead_keeps_the_error_and_the_attempts<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(2)?).await?;
    let dead = |attempts, error: &str| Change::Dead { attempts, error: error.to_owned() };
    let verdicts = [verdict(seqs[0], 0, dead(1, "gave up")), verdict(seqs[1], 0, dead(0, "no handler"))];
    assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    for (event, attempts, error) in [(&written[0], 1, "gave up"), (&written[1], 0, "no handler")] {
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts, row.ended), (3, attempts, true));
        assert_eq!(row.last_error.as_deref(), Some(error));
    }
    assert!(store.fetch(&all()).await?.rows.is_empty());
    Ok(())
}

/// A row that a fallback rescued is DONE, and still has the error of its handler; nothing of it is delivered again.
pub(super) async fn settle_rescued_is_done_and_keeps_the_error<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(4)?).await?;
    let rescued = |attempts, error: &str| Change::Rescued { attempts, error: error.to_owned() };
    let failed = Change::Retry { attempts: 1, delay: Duration::ZERO, error: Some("first try".to_owned()) };
    assert!(settle(&*store, &node, Fence::Table, &[verdict(seqs[0], 0, failed)]).await?.is_empty());

    let verdicts = [
        verdict(seqs[0], 1, rescued(2, "no mail")),
        verdict(seqs[1], 0, rescued(0, "no such address")),
        verdict(seqs[2], 0, Change::Done),
        verdict(seqs[3], 1, rescued(2, "of another attempt")),
    ];
    assert_eq!(settle(&*store, &node, Fence::Table, &verdicts).await?, seqs[3..]);
    let expected = [(1, 2, true, Some("no mail")), (1, 0, true, Some("no such address")), (1, 0, true, None)];
    for (event, expected) in written.iter().zip(expected) {
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts, row.ended, row.last_error.as_deref()), expected);
    }
    assert_eq!(settle(&*store, &node, Fence::Table, &verdicts[..2]).await?.len(), 2, "it is terminal");
    let counts = store.counts().await?;
    assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (1, 3, 0, 0));
    Ok(())
}

/// An attempt that is to be made again in its place counts, and moves nothing: neither the place of the row nor its due
/// number nor who holds it. Its due time is over.
pub(super) async fn settle_retry_in_place_leaves_the_row_where_it_is<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written, timed) = (db.store(), events(3)?, delayed()?);
    let in_place = |attempts, error: &str| Change::RetryInPlace { attempts, error: error.to_owned() };
    let node = owner(&*store).await?;
    let mut seqs = db.write(written.clone()).await?;
    seqs.extend(db.write(vec![timed.clone()]).await?);
    db.make_due(timed.id().as_str()).await?;
    for attempts in 0..2 {
        let verdicts = [seqs[0], seqs[3]].map(|seq| verdict(seq, attempts, in_place(attempts + 1, "no answer")));
        assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
        assert_eq!(seqs_of(&store.fetch(&all()).await?), seqs, "each is in its place");
        for (event, is_timed) in [(&written[0], false), (&timed, false)] {
            let row = columns(db, event).await?;
            assert_eq!((row.status, row.attempts, row.timed, row.ended), (2, attempts + 1, is_timed, false));
            assert_eq!((row.last_error.as_deref(), row.locked_by), (Some("no answer"), None));
        }
    }
    store.leave(&node).await?;

    let peers = [peer(&*store).await?, peer(&*store).await?];
    assert_eq!(claimed(&*store, &peers[0], &all()).await?, seqs);
    let again = [verdict(seqs[0], 2, in_place(3, "still none"))];
    assert!(settle(&*store, &peers[0], Fence::Row, &again).await?.is_empty());
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (2, 3, Some("still none")));
    assert_eq!(row.locked_by.as_deref(), Some(peers[0].as_str()), "its node keeps it");
    assert!(claimed(&*store, &peers[1], &all()).await?.is_empty());
    Ok(())
}

/// Every error text of a handler can be recorded, by a retry and by a DEAD verdict, and comes back unchanged.
pub(super) async fn settle_stores_any_error_text<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let texts = [
        String::new(),
        " leading and trailing \n\t\r\n".to_owned(),
        "it's \"quoted\" `twice` -- /* comment */ ; $1 ?1 :name @x %s {} {0}".to_owned(),
        r"C:\temp\new \\ \0 \u0000 \x41 '\'' E'\n'".to_owned(),
        r#"{"json": [1, 2], "b": "\u0000"}"#.to_owned(),
        "{curly,NULL,\"array\"}".to_owned(),
        "NULL".to_owned(),
        "🦀".repeat(4000),
        "é".repeat(4000),
        "x".repeat(4000),
        "\u{1}\u{7f}\u{80}\u{feff}\u{fffe}\u{ffff}\u{202e}\u{10ffff}".to_owned(),
    ];
    let (retried, dead) = (events(texts.len())?, events(texts.len())?);
    let retried_seqs = db.write(retried.clone()).await?;
    let dead_seqs = db.write(dead.clone()).await?;
    // In one call, as the engine settles: one odd text must not spoil its neighbours.
    let verdicts: Vec<_> = texts
        .iter()
        .zip(retried_seqs.iter().zip(&dead_seqs))
        .flat_map(|(text, (retried, dead))| {
            let retry = Change::Retry { attempts: 1, delay: HOUR, error: Some(text.clone()) };
            [verdict(*retried, 0, retry), verdict(*dead, 0, Change::Dead { attempts: 1, error: text.clone() })]
        })
        .collect();
    assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    for (event, text) in retried.iter().chain(&dead).zip(texts.iter().chain(&texts)) {
        assert_eq!(columns(db, event).await?.last_error.as_ref(), Some(text));
    }
    Ok(())
}

/// No verdict touches the payload, nor anything else the writer set.
pub(super) async fn settle_keeps_payload_bytes<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, hard_payloads()?).await?;
    let retry = Change::Retry { attempts: 1, delay: Duration::ZERO, error: Some("later".to_owned()) };
    let dead = Change::Dead { attempts: 2, error: "never".to_owned() };
    for (attempts, changes) in [(0, [retry.clone(), retry]), (1, [Change::Done, dead])] {
        let changes = changes.iter().cycle();
        let verdicts: Vec<_> =
            seqs.iter().zip(changes).map(|(seq, change)| verdict(*seq, attempts, change.clone())).collect();
        assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    }
    for event in &written {
        let row = columns(db, event).await?;
        assert!(row.status == 1 || row.status == 3, "status {}", row.status);
        let stored = row.payload.map(String::into_bytes).or(row.payload_bytes);
        assert!(stored.as_deref() == Some(event.payload().as_bytes()), "{:?} was changed", event.payload());
    }
    Ok(())
}

/// Removed is delivered: the row is gone, whatever it was and whoever's it was, and only it. What may not be settled may
/// not be removed; what is over stays.
pub(super) async fn settle_remove_deletes_the_row<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let remove = |seq| verdict(seq, 0, Change::Remove);
    let retry = |delay| Change::Retry { attempts: 0, delay, error: Some("later".to_owned()) };
    let node = owner(&*store).await?;
    let stays = event()?;
    let kept = db.write(vec![stays.clone()]).await?[0];

    // Alone in a batch, and beside verdicts of every other kind.
    let seqs = db.write(events(10)?).await?;
    settle_all(&*store, &node, &seqs[..2], &retry(HOUR)).await?;
    settle_all(&*store, &node, &seqs[..3], &Change::Remove).await?;
    assert!(store.fetch(&all()).await?.next_due.is_none(), "two of them waited for another attempt");
    let dead = Change::Dead { attempts: 1, error: "never".to_owned() };
    let in_place = Change::RetryInPlace { attempts: 1, error: "late".to_owned() };
    let others = [Change::Done, retry(Duration::ZERO), dead, in_place];
    let mixed: Vec<_> = seqs[3..5].iter().map(|seq| remove(*seq)).collect();
    let mixed = [mixed, seqs[5..9].iter().zip(others).map(|(seq, change)| verdict(*seq, 0, change)).collect()].concat();
    assert!(settle(&*store, &node, Fence::Table, &mixed).await?.is_empty());
    let (counts, backlog) = (store.counts().await?, store.backlog().await?);
    assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (2, 1, 2, 1), "five are gone");
    assert_eq!((backlog.due, backlog.delayed, backlog.dead), (4, 0, 1));

    // Twice, terminal, with other attempts, or not there: refused, beside one that is not.
    let refused =
        [remove(seqs[0]), remove(seqs[5]), remove(seqs[7]), remove(seqs[8]), verdict(kept, 1, Change::Remove)];
    let absent = remove(seqs[9] + 1);
    let expected = [seqs[0], seqs[5], seqs[7], seqs[8], kept, seqs[9] + 1];
    for beside in [vec![remove(seqs[9])], vec![verdict(seqs[6], 0, Change::Done)], Vec::new()] {
        let batch = [&refused[..], std::slice::from_ref(&absent), &beside].concat();
        let answer: BTreeSet<i64> = settle(&*store, &node, Fence::Table, &batch).await?.into_iter().collect();
        assert_eq!(answer, expected.into(), "beside {beside:?}");
    }
    let counts = store.counts().await?;
    assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (1, 2, 1, 1), "one more is gone and one DONE");
    let row = columns(db, &stays).await?;
    assert_eq!((row.seq, row.status, row.attempts, row.locked_by), (kept, 0, 0, None));
    assert_eq!(settle(&*store, &stranger()?, Fence::Table, &[remove(kept)]).await?, [kept], "who may not");
    store.leave(&node).await?;

    // By the other rights to a row.
    let rebalancing = rebalancer(&*store).await?;
    let more = db.write(events(2)?).await?;
    assert_eq!(settle(&*store, &rebalancing, Fence::Partition, &[remove(more[0])]).await?, more[..1]);
    rebalance(&*store, &rebalancing, Partitions::NONE).await?;
    assert!(settle(&*store, &rebalancing, Fence::Partition, &[remove(more[0])]).await?.is_empty());
    store.leave(&rebalancing).await?;
    let holder = peer(&*store).await?;
    assert_eq!(settle(&*store, &holder, Fence::Row, &[remove(more[1])]).await?, more[1..]);
    assert!(claimed(&*store, &holder, &all()).await?.contains(&more[1]));
    assert!(settle(&*store, &holder, Fence::Row, &[remove(more[1])]).await?.is_empty());
    assert_eq!(store.counts().await?, counts);
    Ok(())
}

/// However close together the rows are that a call names, those between them stay as they are.
pub(super) async fn settle_leaves_the_rows_in_between_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    for change in [Change::Done, Change::Remove] {
        let seqs = db.write(events(20)?).await?;
        let (others, named): (Vec<i64>, Vec<i64>) = seqs.iter().partition(|seq| (*seq - seqs[0]) % 7 == 3);
        settle_all(&*store, &node, &named, &change).await?;
        assert_eq!(seqs_of(&store.fetch(&all()).await?), others, "{change:?}");
        settle_all(&*store, &node, &others, &change).await?;
        assert!(store.fetch(&all()).await?.rows.is_empty(), "{change:?}");
    }
    Ok(())
}
