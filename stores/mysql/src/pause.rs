use pillarbox_core::store::{Interventions, NewPause, Pause, PauseChange, PauseKind};

use crate::answer::{Answers, count as number, int, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::settle::micros;
use crate::sql::script;
use crate::store::Inner;
use crate::upkeep::{EPOCH, owned, time};

/// The number of times that operators have intervened, and what they have paused.
pub(crate) async fn interventions(store: &Inner) -> Result<Interventions, Failure> {
    let answers = store.sessions.run(&store.sql.intervened).await?;
    let count = answers.first(0).map_or(Ok(0), |row| int(row, 0))?;
    Ok(Interventions { count, pauses: decode(&answers)? })
}

/// Pauses an event type or a handler.
pub(crate) async fn pause(store: &Inner, pause: &NewPause) -> Result<PauseChange, Failure> {
    let NewPause { kind, name, by, reason, length } = pause;
    let (kind, name) = (Literal::bytes(kind.name()), Literal::bytes(name));
    let length = length.map_or_else(|| Literal::optional_text(None), |length| Literal::int(micros(length)));
    let (by, reason) = (Literal::optional_text(by.as_deref()), Literal::optional_text(reason.as_deref()));
    let names = [("kind", &kind), ("name", &name)];
    let mut session = store.sessions.session().await?;
    let found = fill(&store.sql.pause_found, &names);
    let answers = session.run(script(["START TRANSACTION", &store.sql.pause_ended, &found])).await?;
    let found = answers.first(2).map(|row| Ok::<_, Failure>((number(row, 0)?, number(row, 1)? > 0))).transpose()?;
    let (pauses, is_paused) = found.unwrap_or_default();
    if !is_paused && pauses >= Pause::MOST as u64 {
        session.run("ROLLBACK").await?;
        session.finish();
        return Ok(PauseChange::TooMany);
    }
    let values = [("kind", &kind), ("name", &name), ("length", &length), ("by", &by), ("reason", &reason)];
    session.run(script([&*fill(&store.sql.pause, &values), "COMMIT"])).await?;
    session.finish();
    Ok(if is_paused { PauseChange::Updated } else { PauseChange::Paused })
}

/// Ends a pause.
pub(crate) async fn resume(store: &Inner, kind: PauseKind, name: &str) -> Result<bool, Failure> {
    let values = [("kind", &Literal::bytes(kind.name())), ("name", &Literal::bytes(name))];
    let resume = fill(&store.sql.resume, &values);
    // What has ended by itself is none any more.
    let answers = store.sessions.run(script([&store.sql.pause_ended, &resume])).await?;
    Ok(answers.matched(1) > 0)
}

/// The pauses that have not ended.
pub(crate) async fn list(store: &Inner) -> Result<Vec<Pause>, Failure> {
    decode(&store.sessions.run(&store.sql.pauses).await?)
}

/// Counts the due rows that pauses hold.
pub(crate) async fn count(store: &Inner) -> Result<u64, Failure> {
    let pauses = list(store).await?;
    if pauses.is_empty() {
        return Ok(0);
    }
    let of = |kind: PauseKind| {
        let names: Vec<&str> = pauses.iter().filter(|pause| pause.kind == kind).map(|pause| &*pause.name).collect();
        Literal::byte_list(&names)
    };
    let values = [("types", &of(PauseKind::Type)), ("handlers", &of(PauseKind::Handler))];
    let answers = store.sessions.run(fill(&store.sql.count_paused, &values)).await?;
    answers.first(0).map_or(Ok(0), |row| number(row, 0))
}

fn decode(answers: &Answers) -> Result<Vec<Pause>, Failure> {
    let mut pauses = Vec::new();
    for row in answers.rows(0) {
        let Some(kind) = text(row, 1)? else { continue };
        pauses.push(Pause {
            kind: PauseKind::of_name(kind),
            name: owned(row, 2)?.unwrap_or_default(),
            since: time(row, 3)?.unwrap_or(EPOCH),
            until: time(row, 4)?,
            by: owned(row, 5)?,
            reason: owned(row, 6)?,
        });
    }
    Ok(pauses)
}
