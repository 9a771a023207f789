use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Fetch, Store};
use pillarbox_core::write::{Finish, insert};
use tokio::time::sleep;

use crate::Harness;
use crate::events::{HOUR, all, delayed, event, events, seqs_of, settle_all};
use crate::nodes::owner;
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// Raises the point, once nobody has done so a moment ago.
async fn raise(store: &dyn Store) -> Result<(), BoxError> {
    while !store.raise_read_point().await? {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// However often it is raised: rows that wait for their first attempt, that failed, that were delayed and are due, that were replayed.
pub(super) async fn raise_read_point_passes_no_pending_row<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = owner(&*store).await?;
    raise(&*store).await?;
    let late = delayed()?;
    let late_seq = db.write(vec![late.clone()]).await?[0];
    let seqs = db.write(events(8)?).await?;
    let [done, failed, held, replayed, waits, ..] = seqs[..] else { return Err("eight rows were written".into()) };
    let last = seqs[7];
    raise(&*store).await?;
    settle_all(&*store, &node, &[done, seqs[5], last], &Change::Done).await?;
    let soon = Change::Retry { attempts: 1, delay: Duration::ZERO, error: Some("not yet".to_owned()) };
    settle_all(&*store, &node, &[failed], &soon).await?;
    settle_all(
        &*store,
        &node,
        &[held],
        &Change::RetryInPlace { attempts: 1, error: "it waits in its place".to_owned() },
    )
    .await?;
    settle_all(&*store, &node, &[replayed], &Change::Dead { attempts: 1, error: "for good".to_owned() }).await?;
    raise(&*other).await?;
    raise(&*store).await?;
    assert_eq!(store.replay(&[replayed]).await?, [replayed]);
    db.make_due(late.id().as_str()).await?;
    raise(&*other).await?;
    store.promote_due(&rows_at(&*store, &[late_seq]).await?).await?;

    let pending = async || {
        let mut found = seqs_of(&store.fetch(&all()).await?);
        found.sort_unstable();
        Ok::<_, BoxError>(found)
    };
    assert_eq!(pending().await?, [late_seq, failed, held, replayed, waits, seqs[6]]);
    settle_all(&*store, &node, &[waits, seqs[6], late_seq], &Change::Done).await?;
    raise(&*store).await?;
    assert_eq!(pending().await?, [failed, held, replayed]);
    let fresh = db.write(events(2)?).await?;
    raise(&*other).await?;
    assert_eq!(pending().await?, [&[failed, held, replayed], &fresh[..]].concat());
    let retried = Change::Retry { attempts: 1, delay: HOUR, error: None };
    settle_all(&*store, &node, &fresh, &retried).await?;
    raise(&*store).await?;
    assert_eq!(store.counts().await?.pending(), 5);
    Ok(())
}

/// A row that commits late, below rows that were delivered long ago, is found.
pub(super) async fn raise_read_point_waits_for_open_transactions<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = owner(&*store).await?;
    for commits in [true, false, true] {
        let mut late = db.begin().await?;
        let below = insert(&*store, &mut late, vec![event()?]).await?[0];
        let mut expected = Vec::new();
        for _ in 0..2 {
            let above = db.write(events(3)?).await?;
            settle_all(&*store, &node, &above, &Change::Done).await?;
            raise(&*store).await?;
            raise(&*other).await?;
        }
        if commits {
            late.commit().await?;
            expected.push(below);
        } else {
            late.rollback().await?;
        }
        for store in [&store, &other] {
            assert_eq!(seqs_of(&store.fetch(&all()).await?), expected);
            raise(&**store).await?;
        }
        settle_all(&*store, &node, &expected, &Change::Done).await?;
    }
    Ok(())
}

/// Rows that are made pending by hand are found as soon as an intervention is counted, as the SQL contract asks.
pub(super) async fn raise_read_point_goes_back_after_an_intervention<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let written = events(3)?;
    let seqs = db.write(written.clone()).await?;
    settle_all(&*store, &node, &seqs, &Change::Done).await?;
    raise(&*store).await?;
    raise(&*store).await?;
    let again =
        format!("UPDATE {} SET status = 0, done_at = NULL WHERE event_id = '{}'", db.table("event"), written[1].id());
    db.execute(&again).await?;
    let tells = format!(
        "UPDATE {} SET interventions = interventions + 1 WHERE {} = 0",
        db.table("partition"),
        H::quote("partition")
    );
    db.execute(&tells).await?;
    for _ in 0..3 {
        assert_eq!(seqs_of(&store.fetch(&Fetch { above: seqs[0], ..all() }).await?), [seqs[1]]);
        raise(&*store).await?;
    }
    Ok(())
}
