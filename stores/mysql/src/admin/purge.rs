use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::row::Status;
use pillarbox_core::store::refusal;
use pillarbox_core::store::{Purge, Purgeable, Purged};

use super::filter::of_key;
use crate::answer::{int, is_true, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::ownership::locked;
use crate::settle::micros;
use crate::sql::script;
use crate::store::Inner;

/// Looks at the next rows in the order of the table, and deletes those that are old enough.
pub(super) async fn purge(store: &Inner, purge: &Purge) -> Result<Purged, Failure> {
    let sql = &store.sql;
    let values = [
        ("above", &Literal::int(purge.above)),
        ("age", &Literal::int(micros(purge.older_than))),
        ("limit", &Literal::count(purge.limit)),
        ("of_key", &Literal::clause(of_key(&purge.key))),
    ];
    let window = fill(&sql.purge_window, &values);
    let mut session = store.sessions.session().await?;
    let answers = if purge.what == Purgeable::All {
        // No node joins before this has ended.
        let answers = locked(store, &mut session, &[&sql.live_nodes, &window]).await?;
        if let Some(row) = answers.first(0) {
            let problem = refusal::still_delivers(text(row, 0)?.unwrap_or_default());
            return Err(Failure::Refused(StoreErrorKind::IncompatibleMode, problem));
        }
        answers
    } else {
        session.run(script(["START TRANSACTION", &window])).await?
    };

    let status = match purge.what {
        Purgeable::Done => Some(Status::Done.code()),
        Purgeable::Dead => Some(Status::Dead.code()),
        Purgeable::All => None,
    };
    let (mut doomed, mut last, mut all_are_young) = (Vec::new(), None, true);
    for row in answers.rows(1) {
        let (seq, created_long_ago, ended_long_ago) = (int(row, 0)?, is_true(row, 2)?, is_true(row, 3)?);
        last = Some(seq);
        // Rows that a clock has stamped ahead say nothing about those behind them.
        all_are_young &= !created_long_ago && !ended_long_ago && !is_true(row, 4)?;
        let goes = match status {
            Some(status) => int(row, 1)? == i64::from(status) && ended_long_ago,
            None => created_long_ago,
        };
        if goes && is_true(row, 5)? {
            doomed.push(seq);
        }
    }
    let over = answers.rows(1).len() < purge.limit || all_are_young;
    let seqs = Literal::ints(&doomed);
    // A DEAD row may have been replayed since it was looked at.
    let delete = match status {
        Some(status) => fill(&sql.purge, &[("seqs", &seqs), ("status", &Literal::int(status))]),
        None => fill(&sql.delete, &[("seqs", &seqs)]),
    };
    let intervenes = purge.what != Purgeable::Done && !doomed.is_empty();
    let intervene = intervenes.then_some(&*sql.intervene);
    let answers = session.run(script([&*delete].into_iter().chain(intervene).chain(["COMMIT"]))).await?;
    session.finish();
    Ok(Purged { removed: answers.matched(0), next: last.filter(|_| !over) })
}
