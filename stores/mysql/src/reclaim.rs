use std::collections::BTreeSet;
use std::time::Duration;

use mysql_async::Row;
use pillarbox_core::ownership::{NodeId, Reclaimed};

use crate::answer::{is_true, optional_int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::ownership::{clear_ended, locked};
use crate::sql::script;
use crate::store::Inner;

/// The number of rows that one statement frees.
const STEP: usize = 1000;

/// Clears away nodes whose lease has ended and frees what dead nodes hold, in one transaction in which no node can join.
///
/// On a session for events, since it may have to look at every pending row.
pub(crate) async fn reclaim(store: &Inner, node: &NodeId, thorough: bool) -> Result<Reclaimed, Failure> {
    let sql = &store.sql;
    let membership = fill(&sql.membership, &[("id", &Literal::text(node.as_str()))]);
    let mut session = store.sessions.session().await?;
    // Asked often, so the usual answer takes no lock and writes nothing.
    let answers = session.run(&membership).await?;
    let found = Membership::read(answers.first(0))?;
    if !found.expired && !thorough {
        session.finish();
        return Ok(found.answer(0));
    }

    locked(store, &mut session, &[]).await?;
    let judged = clear_ended(store, &mut session).await?;
    let mut found = Membership::read(session.run(&membership).await?.first(0))?;
    found.next_expiry = found.next_expiry.into_iter().chain(judged.spared_for).min();
    let mut freed = 0;
    if thorough || !judged.ended.is_empty() {
        let strays = fill(&sql.strays, &[("limit", &Literal::count(STEP))]);
        loop {
            // What was freed is not a stray any more, so each round finds others.
            let found = session.run(&strays).await?;
            let mut seqs = found.ints(0)?;
            if seqs.is_empty() {
                break;
            }
            seqs.sort_unstable();
            let holders: BTreeSet<&str> =
                found.rows(0).iter().filter_map(|row| text(row, 1).transpose()).collect::<Result<_, _>>()?;
            let holders: Vec<&str> = holders.into_iter().collect();
            let values = [("seqs", &Literal::ints(&seqs)), ("holders", &Literal::texts(&holders))];
            let answers = session.run(fill(&sql.free_strays, &values)).await?;
            freed += answers.matched(0);
            if seqs.len() < STEP {
                break;
            }
        }
    }
    session.run(script(["COMMIT"])).await?;
    session.finish();
    Ok(found.answer(freed))
}

/// The nodes as `membership.sql` finds them.
struct Membership {
    expired: bool,
    registered: bool,
    next_expiry: Option<Duration>,
}

impl Membership {
    fn read(row: Option<&Row>) -> Result<Self, Failure> {
        let Some(row) = row else { return Ok(Self { expired: false, registered: false, next_expiry: None }) };
        Ok(Self {
            expired: is_true(row, 0)?,
            registered: is_true(row, 1)?,
            next_expiry: optional_int(row, 2)?.map(wait),
        })
    }

    fn answer(&self, freed: u64) -> Reclaimed {
        Reclaimed { registered: self.registered, freed, next_expiry: self.next_expiry }
    }
}
