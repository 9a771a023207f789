use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::Fence;
use pillarbox_core::row::{Change, Expected, Position, Verdict};
use pillarbox_core::store::RowId;

use crate::Harness;
use crate::events::{
    HOUR, Owned, columns, entitled, event, events, owned, record, row_at, settle, settle_all, verdict,
};
use crate::nodes::{owner, stranger};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// Texts of which none may be taken for another, or for a part of a statement.
const TEXTS: [&str; 7] = ["7", "orders/3/1042", "Grüße/🦀", "it's \"7\" \\ {} $1 ?1 :a", "NULL", " a ", "[1,\"x\"]"];

fn delivered_as(text: &str) -> Result<Change, BoxError> {
    Ok(Change::DeliveredAs(Position::new(text)?))
}

/// The states, and the positions, of the rows of events.
async fn kept<H: Harness>(db: &Db<H>, events: &[Envelope]) -> Result<Vec<(i16, Option<String>)>, BoxError> {
    let mut kept = Vec::new();
    for event in events {
        let record = record(db, event).await?;
        let states = db.store().states(&[event.id().clone()]).await?;
        assert!(states.iter().map(|state| &state.delivered_as).eq([&record.delivered_as]), "{states:?} {record:?}");
        kept.push((record.status, record.delivered_as));
    }
    Ok(kept)
}

fn done(texts: &[Option<&str>]) -> Vec<(i16, Option<String>)> {
    texts.iter().map(|text| (1, text.map(str::to_owned))).collect()
}

/// Each its own, by every right to a row, whatever the text is: all rows of a call, or some; one after the other or with others in between;
/// with ids of one length or of several.
pub(super) async fn settle_keeps_the_position_of_a_delivered_row<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let longest = "é".repeat(Position::MAX_BYTES / 2);
    let mut all: Vec<Option<&str>> = TEXTS.iter().copied().map(Some).collect();
    all.push(Some(&longest));
    let some: Vec<_> = all.iter().enumerate().map(|(place, text)| text.filter(|_| place % 3 != 1)).collect();
    for fence in [Fence::Table, Fence::Partition, Fence::Row] {
        for (texts, every, alike) in [(&all, 1, true), (&some, 1, true), (&some, 3, true), (&all, 1, false)] {
            let mut written = events(texts.len() * every)?;
            if !alike {
                let named = |id| Envelope::builder("test.event").id(id).payload_json("{}").build();
                let ids = (0..texts.len()).map(|number| format!("{fence:?}{}", "x".repeat(number)));
                written = ids.map(named).collect::<Result<_, _>>()?;
            }
            let seqs = db.write(written.clone()).await?;
            let node = entitled(&*store, fence).await?;
            let named: Vec<Envelope> = written.iter().step_by(every).cloned().collect();
            let drafts = seqs.iter().step_by(every).zip(texts).map(|(seq, text)| {
                let change = text.map_or(Ok(Change::Done), delivered_as)?;
                Ok(verdict(*seq, 0, change))
            });
            let drafts = drafts.collect::<Result<Vec<_>, BoxError>>()?;
            assert!(settle(&*store, &node, fence, &drafts).await?.is_empty());
            assert_eq!(kept(db, &named).await?, done(texts), "{fence:?}");
            let others = || (0..written.len()).filter(move |place| place % every != 0);
            let between: Vec<Envelope> = others().map(|place| written[place].clone()).collect();
            assert_eq!(kept(db, &between).await?, vec![(0, None); between.len()], "{fence:?}");
            let rest: Vec<_> = others().map(|place| verdict(seqs[place], 0, Change::Done)).collect();
            assert!(settle(&*store, &node, fence, &rest).await?.is_empty());
            assert_eq!(kept(db, &named).await?, done(texts), "{fence:?}: as before");
            store.leave(&node).await?;
        }
    }
    Ok(())
}

/// Beside verdicts of every other kind, of which none keeps a position; of a row that has failed before, whose error is cleared.
pub(super) async fn settle_keeps_positions_beside_other_verdicts<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(9)?).await?;
    let retry = |attempts| Change::Retry { attempts, delay: HOUR, error: Some("later".to_owned()) };
    settle_all(&*store, &node, &seqs[..2], &retry(1)).await?;
    let drafts = [
        verdict(seqs[0], 1, delivered_as("s/1")?),
        verdict(seqs[1], 1, Change::Done),
        verdict(seqs[2], 0, delivered_as("s/3")?),
        verdict(seqs[3], 0, retry(1)),
        verdict(seqs[4], 0, Change::Done),
        verdict(seqs[5], 0, Change::Dead { attempts: 1, error: "never".to_owned() }),
        verdict(seqs[6], 0, Change::Rescued { attempts: 1, error: "another way".to_owned() }),
        verdict(seqs[7], 0, Change::RetryInPlace { attempts: 1, error: "late".to_owned() }),
        verdict(seqs[8], 0, Change::Remove),
    ];
    assert!(settle(&*store, &node, Fence::Table, &drafts).await?.is_empty());
    let position = |text: &str| Some(text.to_owned());
    let expected =
        [(1, position("s/1")), (1, None), (1, position("s/3")), (2, None), (1, None), (3, None), (1, None), (2, None)];
    assert_eq!(kept(db, &written[..8]).await?, expected);
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.attempts, row.last_error, row.ended, row.locked_by), (1, None, true, None));
    assert!(db.columns(written[8].id().as_str()).await?.is_none());
    Ok(())
}

/// A second verdict, one of a stranger, and one on another row in its place keep no position, and the others of their call do.
pub(super) async fn settle_keeps_no_position_of_a_refused_verdict<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(4)?).await?;
    settle_all(&*store, &node, &seqs[..1], &delivered_as("first")?).await?;
    let rows = rows_at(&*store, &seqs).await?;
    let on = |row: RowId, expected, text| Ok::<_, BoxError>(Verdict { row, expected, change: delivered_as(text)? });
    let other = RowId { event_id: event()?.id().clone(), ..rows[2].clone() };
    let verdicts = [
        on(rows[0].clone(), Expected::FIRST, "second")?,
        on(rows[1].clone(), Expected { attempts: 1, replays: 0 }, "other attempts")?,
        on(other, Expected::FIRST, "another event's")?,
        on(rows[3].clone(), Expected::FIRST, "fourth")?,
    ];
    let mut refused = store.settle(&stranger()?, Fence::Table, &verdicts).await?;
    refused.sort_unstable();
    assert_eq!(refused, seqs);
    let mut refused = store.settle(&node, Fence::Table, &verdicts).await?;
    refused.sort_unstable();
    assert_eq!(refused, seqs[..3]);
    let position = |text: &str| Some(text.to_owned());
    let expected = [(1, position("first")), (0, None), (0, None), (1, position("fourth"))];
    assert_eq!(kept(db, &written).await?, expected);
    Ok(())
}

/// A row that another program has made DEAD though it was delivered: it is delivered anew.
pub(super) async fn replay_clears_the_position<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), event()?);
    let seqs = db.write(vec![written.clone()]).await?;
    let node = owner(&*store).await?;
    settle_all(&*store, &node, &seqs, &delivered_as("s/1")?).await?;
    let (table, id) = (db.table("event"), written.id());
    db.execute(&format!("UPDATE {table} SET status = 3, last_error = 'lost' WHERE event_id = '{id}'")).await?;
    assert_eq!(store.replay(&seqs).await?, seqs);
    assert_eq!(kept(db, std::slice::from_ref(&written)).await?, [(0, None)]);
    settle_all(&*store, &node, &seqs, &delivered_as("s/2")?).await?;
    assert_eq!(kept(db, &[written]).await?, done(&[Some("s/2")]));
    let row = row_at(&*store, seqs[0]).await?;
    assert_eq!(store.record(row.seq).await?.and_then(|record| record.delivered_as).as_deref(), Some("s/2"));
    Ok(())
}
