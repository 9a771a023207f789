use pillarbox_core::ownership::{Epochs, NodeId, NodeMode, RebalanceView, Rebalanced, spread};

use crate::answer::{Answers, int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::ownership::{evict_expired, locked, no_partitions};
use crate::sql::script;
use crate::store::Inner;

/// Evicts nodes whose lease has ended, frees what `node` gives, and takes what is free of its target, in one
/// transaction that is alone in changing membership and ownership.
pub(crate) async fn rebalance(store: &Inner, node: &NodeId, give: &Epochs) -> Result<Rebalanced, Failure> {
    let sql = &store.sql;
    let id = Literal::text(node.as_str());
    let owners = fill(&sql.owners, &[("id", &id)]);
    let mut session = store.sessions.session().await?;
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing. The two are read one after
    // the other: the node's own partitions are right, its target may have changed since, and the next call will tell.
    let found = rebalance_view(&session.run(script([&sql.members, &owners])).await?, 0, node)?;
    if let Some(answer) = found.settled(give) {
        session.finish();
        return Ok(answer);
    }

    let given = Literal::tuples(give.iter().map(|(partition, epoch)| (i64::from(partition), epoch)));
    let given = fill(&sql.give_partitions, &[("id", &id), ("given", &given)]);
    locked(store, &mut session, &[]).await?;
    let judged = evict_expired(store, &mut session).await?;
    let answers = session.run(script([&*given, &sql.members, &owners])).await?;
    let mut found = rebalance_view(&answers, 1, node)?;
    found.next_expiry = judged.next_expiry(found.next_expiry);
    // A taken partition has the epoch after the one that was read under the lock.
    let taken = if found.registered { found.next_epochs() } else { Epochs::none() };
    let gained = Literal::ints(&taken.partitions().iter().map(i64::from).collect::<Vec<_>>());
    let take = fill(&sql.take_partitions, &[("id", &id), ("partitions", &gained)]);
    let change = (!taken.is_empty()).then_some(&*take);
    session.run(script(change.into_iter().chain(["COMMIT"]))).await?;
    session.finish();
    Ok(found.answer(&taken))
}

/// Nodes and partitions as `members.sql` and `owners.sql` find them; the first of their answers is at `index`.
fn rebalance_view(answers: &Answers, index: usize, node: &NodeId) -> Result<RebalanceView, Failure> {
    let (mut found, mut members) = (RebalanceView::default(), Vec::new());
    for row in answers.rows(index) {
        let other = NodeId::from_stored(text(row, 0)?.unwrap_or_default());
        let left = int(row, 2)?;
        found.add_node(other == *node, (left > 0).then(|| wait(left)));
        if text(row, 1)? == Some(NodeMode::Partitioned.name()) {
            members.push(other);
        }
    }
    found.target = spread::target(&members, node);
    if answers.rows(index + 1).is_empty() {
        return Err(no_partitions());
    }
    for row in answers.rows(index + 1) {
        let Ok(partition) = u8::try_from(int(row, 0)?) else { continue };
        found.epochs.extend([(partition, int(row, 2)?)]);
        match int(row, 1)? {
            0 => found.free.insert(partition),
            1 => found.owned.insert(partition),
            2 => found.free.insert(partition) && found.died.insert(partition),
            _ => false,
        };
    }
    Ok(found)
}
