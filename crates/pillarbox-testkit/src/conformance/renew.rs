use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Acquired, Epochs, LeaseMark, NodeId, NodeMode, Renewal};
use pillarbox_core::store::NodeFigures;
use pillarbox_core::write::Dialect;
use tokio::time::{sleep, timeout};

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{TICK, member, owner, peer, stranger};
use crate::run::{Db, Outcome};

/// The lease runs for the given time from the renewal, and ownership stays where it is.
pub(super) async fn renew_extends_a_living_lease<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let first = owner(&*store).await?;
    let second = member(&*store).await?;
    assert!(matches!(store.renew(&first, HOUR * 10, None, None).await?, Renewal::Renewed { .. }));
    match store.acquire(&second).await? {
        Acquired::Standby { owner, expires_in } => {
            assert_eq!(owner, first);
            assert!(expires_in > HOUR * 9 && expires_in <= HOUR * 10, "the lease of ten hours ends in {expires_in:?}");
        }
        answer => return Err(format!("expected a standby, not {answer:?}").into()),
    }
    Ok(())
}

/// A lease that has ended by the database's clock goes on as long as nobody has evicted its node: nobody has taken over.
pub(super) async fn renew_revives_a_node_that_nobody_evicted<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [first, second] = [owner(&*store).await?, member(&*store).await?];
    db.expire(&first).await?;
    assert!(matches!(store.renew(&first, HOUR, None, None).await?, Renewal::Renewed { .. }));
    assert!(matches!(store.acquire(&second).await?, Acquired::Standby { owner, .. } if owner == first));
    Ok(())
}

/// A node that was evicted, has left or never joined cannot renew its lease.
pub(super) async fn renew_refuses_an_evicted_node<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let first = owner(&*store).await?;
    db.expire(&first).await?;
    let second = owner(&*store).await?;
    assert_eq!(store.renew(&first, HOUR, None, None).await?, Renewal::Lost, "it was evicted");
    assert!(matches!(store.renew(&second, HOUR, None, None).await?, Renewal::Renewed { .. }));
    store.leave(&second).await?;
    assert_eq!(store.renew(&second, HOUR, None, None).await?, Renewal::Lost, "it has left");
    assert_eq!(store.renew(&stranger()?, HOUR, None, None).await?, Renewal::Lost, "it never joined");
    Ok(())
}

/// The node's row in an older state than the last confirmed renewal left it: the lease is as good as ended. A renewal whose answer
/// was lost is no such state.
pub(super) async fn renew_tells_of_a_database_that_went_back<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let renew = async |last| -> Result<LeaseMark, BoxError> {
        match store.renew(&node, HOUR, last, None).await? {
            Renewal::Renewed { mark } => Ok(mark),
            other => Err(format!("expected a renewal, not {other:?}").into()),
        }
    };
    let first = renew(None).await?;
    sleep(TICK).await;
    let second = renew(Some(first)).await?;
    assert!(first < second);
    sleep(TICK).await;
    let third = renew(Some(first)).await?;
    let later = LeaseMark(third.0 + 1);
    assert_eq!(store.renew(&node, HOUR, Some(later), None).await?, Renewal::WentBack);
    sleep(TICK).await;
    assert!(renew(Some(third)).await? > third, "and the lease stays as it was");
    db.forget(&node).await?;
    assert_eq!(store.renew(&node, HOUR, Some(third), None).await?, Renewal::Lost, "from before it joined");
    Ok(())
}

/// While any other call that changes membership or ownership waits for a lock, renewals by the same store are answered.
pub(super) async fn renew_waits_for_no_other_call<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [node, leaving] = [peer(&*store).await?, peer(&*store).await?];
    let joining = stranger()?;
    let column = if store.info().dialect == Dialect::MYSQL { "`partition`" } else { "partition" };
    let lock = format!("SELECT 1 FROM {} WHERE {column} = 0 FOR UPDATE", db.table("partition"));
    for call in ["acquire", "rebalance", "reclaim", "join", "leave"] {
        // With a node to be evicted, the call has something to change.
        db.register(&stranger()?, NodeMode::MultiNode.name(), -1).await?;
        let held = db.hold(&lock).await?;
        let waits = async {
            match call {
                "acquire" => store.acquire(&node).await.map(drop),
                "rebalance" => store.rebalance(&node, &Epochs::none()).await.map(drop),
                "reclaim" => store.reclaim(&node, false).await.map(drop),
                "join" => store.join(&joining, NodeMode::MultiNode, HOUR).await,
                _ => store.leave(&leaving).await,
            }
        };
        let renews = async {
            while db.waiting().await? == 0 {
                sleep(Duration::from_millis(5)).await;
            }
            let renewal = timeout(Duration::from_secs(5), store.renew(&node, HOUR, None, None)).await;
            held.release().await?;
            Ok::<_, BoxError>(renewal)
        };
        let (waited, renewal) = tokio::join!(waits, renews);
        waited?;
        let renewal = renewal?.map_err(|_elapsed| format!("the renewal waits for a call of {call}"))?;
        assert!(matches!(renewal?, Renewal::Renewed { .. }), "{call}");
    }
    Ok(())
}

/// The figures of a renewal are in the node's row until another renewal brings others; they are no other node's.
pub(super) async fn renew_writes_the_figures_of_the_node<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [node, other] = [member(&*store).await?, member(&*store).await?];
    let figures = async |node: &NodeId| -> Result<Option<NodeFigures>, BoxError> {
        Ok(store.nodes().await?.into_iter().find(|status| status.node == *node).and_then(|status| status.figures))
    };
    assert_eq!(figures(&node).await?, None);
    let first = NodeFigures {
        delivered: u64::MAX,
        failed: 3,
        dead: 1,
        latency_p50: Some(Duration::from_micros(1_500)),
        latency_p99: Some(HOUR * 24 * 365),
        busy: 8,
        queued: 2_000,
    };
    let second = NodeFigures { delivered: 9, ..NodeFigures::default() };
    for (written, found) in [(Some(&first), first), (None, first), (Some(&second), second)] {
        assert!(matches!(store.renew(&node, HOUR, None, written).await?, Renewal::Renewed { .. }));
        assert_eq!(figures(&node).await?, Some(found));
    }
    assert_eq!(figures(&other).await?, None);
    Ok(())
}
