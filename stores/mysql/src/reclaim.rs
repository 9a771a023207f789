use std::collections::BTreeSet;

use mysql_async::Row;
use pillarbox_core::ownership::{NodeId, Reclaimed};

use crate::answer::{is_true, optional_int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::ownership::{evict_expired, locked};
use crate::sql::script;
use crate::store::Inner;

/// The number of rows that one statement frees.
const STEP: usize = 1000;

/// Evicts nodes whose lease has ended and frees what dead nodes hold, in one transaction in which no node can join.
///
/// On a session for events, since it may have to look at every pending row.
pub(crate) async fn reclaim(store: &Inner, node: &NodeId, thorough: bool) -> Result<Reclaimed, Failure> {
    let sql = &store.sql;
    let membership = fill(&sql.membership, &[("id", &Literal::text(node.as_str()))]);
    let mut session = store.sessions.session().await?;
    // Asked often, so the usual answer takes no lock and writes nothing.
    let (found, any_expired) = read(session.run(&membership).await?.first(0))?;
    if !any_expired && !thorough {
        session.finish();
        return Ok(found);
    }

    locked(store, &mut session, &[]).await?;
    let judged = evict_expired(store, &mut session).await?;
    let (found, _) = read(session.run(&membership).await?.first(0))?;
    let mut freed = 0;
    if thorough || !judged.ended.is_empty() {
        let orphans = fill(&sql.reclaim_orphans, &[("limit", &Literal::count(STEP))]);
        loop {
            // A freed row is not an orphan any more, so each round finds others.
            let found = session.run(&orphans).await?;
            let mut seqs = found.ints(0)?;
            if seqs.is_empty() {
                break;
            }
            seqs.sort_unstable();
            let holders: BTreeSet<&str> =
                found.rows(0).iter().filter_map(|row| text(row, 1).transpose()).collect::<Result<_, _>>()?;
            let holders: Vec<&str> = holders.into_iter().collect();
            let values = [("seqs", &Literal::ints(&seqs)), ("holders", &Literal::texts(&holders))];
            let answers = session.run(fill(&sql.free_orphans, &values)).await?;
            freed += answers.matched(0);
            if seqs.len() < STEP {
                break;
            }
        }
    }
    session.run(script(["COMMIT"])).await?;
    session.finish();
    Ok(Reclaimed { freed, next_expiry: judged.next_expiry(found.next_expiry), ..found })
}

/// The nodes as `membership.sql` finds them; the flag is true if the lease of any has ended.
fn read(row: Option<&Row>) -> Result<(Reclaimed, bool), Failure> {
    let Some(row) = row else { return Ok((Reclaimed { registered: false, freed: 0, next_expiry: None }, false)) };
    let next_expiry = optional_int(row, 2)?.map(wait);
    Ok((Reclaimed { registered: is_true(row, 1)?, freed: 0, next_expiry }, is_true(row, 0)?))
}
