use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, NodeMode, Renewal};
use pillarbox_core::store::Admin as _;

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{member, stranger};
use crate::run::{Db, Outcome};

/// While a node of another mode lives, one that cannot run beside it is refused, told why, and leaves no trace.
pub(super) async fn join_refuses_a_mode_that_cannot_coexist<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let modes = [NodeMode::SingleNode, NodeMode::MultiNode, NodeMode::Partitioned, NodeMode::Ordered];
    for living in modes {
        let nodes = [stranger()?, stranger()?];
        for node in &nodes {
            store.join(node, living, HOUR).await?;
        }
        for mode in modes {
            let node = stranger()?;
            let joined = store.join(&node, mode, HOUR).await;
            assert_eq!(joined.is_ok(), mode == living, "{mode} beside {living}: {joined:?}");
            let is_registered = store.nodes().await?.iter().any(|status| status.node == node);
            assert_eq!(is_registered, mode == living, "{mode} beside {living}");
            if let Err(error) = joined {
                assert_eq!(error.kind(), StoreErrorKind::IncompatibleMode, "{error}");
                let text = error.to_string();
                assert!(text.contains(mode.name()) && text.contains(living.name()), "{text}");
                assert_eq!(store.renew(&node, HOUR, None, None).await?, Renewal::Lost, "{mode} beside {living}");
            }
            store.leave(&node).await?;
        }
        for node in &nodes {
            store.leave(node).await?;
        }
    }

    db.register(&stranger()?, "a_mode_of_a_later_release", 3600).await?;
    let node = stranger()?;
    let refused = store.join(&node, NodeMode::SingleNode, HOUR).await;
    let error = refused.err().ok_or("it joined beside a mode it cannot know to be safe")?;
    assert_eq!(error.kind(), StoreErrorKind::IncompatibleMode, "{error}");
    assert!(!error.is_temporary(), "{error}");
    let text = error.to_string();
    assert!(text.contains("a_mode_of_a_later_release") && text.contains("single_node"), "{text}");
    assert_eq!(store.acquire(&node).await?, Acquired::Lost, "a node that was refused is not registered");
    Ok(())
}

/// The mode of an expired node does not matter, whether the node has been evicted or not; and it cannot come back beside the
/// new one.
pub(super) async fn join_ignores_expired_nodes_of_another_mode<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let expired = stranger()?;
    db.register(&expired, "a_mode_of_a_later_release", -10).await?;
    let node = member(&*store).await?;
    assert_eq!(store.renew(&expired, HOUR, None, None).await?, Renewal::Lost);
    assert!(matches!(store.acquire(&node).await?, Acquired::Owner { .. }));
    Ok(())
}
