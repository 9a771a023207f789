use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{Interventions, NewPause, Pause, PauseChange, PauseKind};

use crate::answer::{self, Answers, EPOCH, bytes, int, owned, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::settle::micros;
use crate::sql::script;
use crate::store::Inner;

/// The number of times that operators have intervened, and their pauses.
pub(crate) async fn interventions(store: &Inner) -> Result<Interventions, Failure> {
    let answers = store.sessions.run(&store.sql.intervened).await?;
    let count = answers.first(0).map_or(Ok(0), |row| int(row, 0))?;
    Ok(Interventions { count, pauses: decode(store, &answers)? })
}

/// Pauses an event type or a handler.
pub(super) async fn pause(store: &Inner, pause: &NewPause) -> Result<PauseChange, Failure> {
    let NewPause { kind, name, by, reason, length } = pause;
    let (kind, name) = (Literal::bytes(kind.name()), Literal::bytes(name));
    let length = length.map_or_else(|| Literal::optional_text(None), |length| Literal::int(micros(length)));
    let (by, reason) = (Literal::optional_text(by.as_deref()), Literal::optional_text(reason.as_deref()));
    let names = [("kind", &kind), ("name", &name)];
    let mut session = store.sessions.session().await?;
    let found = fill(&store.sql.pause_found, &names);
    let answers = session.run(script(["START TRANSACTION", &store.sql.pause_ended, &found])).await?;
    let found = answers
        .first(2)
        .map(|row| Ok::<_, Failure>((answer::count(row, 0)?, answer::count(row, 1)? > 0)))
        .transpose()?;
    let (pauses, is_paused) = found.unwrap_or_default();
    if !is_paused && pauses >= Pause::MAX_PAUSES as u64 {
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
pub(super) async fn resume(store: &Inner, kind: PauseKind, name: &str) -> Result<bool, Failure> {
    let values = [("kind", &Literal::bytes(kind.name())), ("name", &Literal::bytes(name))];
    let resume = fill(&store.sql.resume, &values);
    // A pause that has ended by itself is none any more.
    let answers = store.sessions.run(script([&store.sql.pause_ended, &resume])).await?;
    Ok(answers.matched(1) > 0)
}

/// The pauses that have not ended.
pub(super) async fn list(store: &Inner) -> Result<Vec<Pause>, Failure> {
    decode(store, &store.sessions.run(&store.sql.pauses).await?)
}

/// Counts the due rows that pauses hold.
pub(super) async fn count(store: &Inner) -> Result<u64, Failure> {
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
    answers.first(0).map_or(Ok(0), |row| answer::count(row, 0))
}

/// Reads the pauses. The columns are bytes and take anything, so a row that is no pause is left out, with a warning: it must not keep
/// nodes from starting.
fn decode(store: &Inner, answers: &Answers) -> Result<Vec<Pause>, Failure> {
    let (mut pauses, mut ignored) = (Vec::new(), Vec::new());
    for row in answers.rows(0) {
        // Both are NULL where nothing is paused.
        let (Some(kind), Some(name)) = (bytes(row, 1)?, bytes(row, 2)?) else { continue };
        let Some((kind, name)) = subject(kind, name) else {
            ignored.push(format!("kind {} name {}", shown(kind), shown(name)));
            continue;
        };
        pauses.push(Pause {
            kind,
            name: name.to_owned(),
            since: time(row, 3)?.unwrap_or(EPOCH),
            until: time(row, 4)?,
            by: owned(row, 5)?,
            reason: owned(row, 6)?,
        });
    }
    if let Some(rows) = store.ignored_pauses.news(ignored) {
        tracing::warn!(
            table = store.table.beside("pause"),
            rows,
            "rows of the table of pauses are ignored: `kind` is neither `type` nor `handler`, or `name` is not UTF-8; delete them, and \
             pause what they were meant for"
        );
    }
    Ok(pauses)
}

/// The kind and the name of a row, unless it is no pause.
fn subject<'a>(kind: &[u8], name: &'a [u8]) -> Option<(PauseKind, &'a str)> {
    Some((PauseKind::of_name(std::str::from_utf8(kind).ok()?)?, std::str::from_utf8(name).ok()?))
}

/// Shows a text, or bytes that are none as the literal by which SQL finds them.
fn shown(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| Literal::hexadecimal(bytes).to_string(), |text| format!("{text:?}"))
}

/// The ignored rows of the last look: nodes look every two seconds, and warn once.
#[derive(Debug, Default)]
pub(crate) struct IgnoredPauses(Mutex<Vec<String>>);

impl IgnoredPauses {
    /// The number of rows that one warning shows.
    const SHOWN: usize = 5;

    /// The text for a warning about these rows, if there are any and they are others than those of the last look.
    fn news(&self, rows: Vec<String>) -> Option<String> {
        let mut last = self.0.lock();
        if *last == rows {
            return None;
        }
        *last = rows;
        let (first, others) = last.split_at(last.len().min(Self::SHOWN));
        let more = if others.is_empty() { String::new() } else { format!("; and {} more", others.len()) };
        (!first.is_empty()).then(|| first.join("; ") + &more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_pause_by_its_kind_and_a_text() {
        assert_eq!(subject(b"type", "\u{e4} ".as_bytes()), Some((PauseKind::Type, "\u{e4} ")));
        assert_eq!(subject(b"handler", b""), Some((PauseKind::Handler, "")));
        for (kind, name) in [(&b"typ"[..], &b"a"[..]), (b"\xff", b"a"), (b"type", b"\xff"), (b"HANDLER", b"a")] {
            assert_eq!(subject(kind, name), None);
        }
        assert_eq!((shown(b"a\nb"), shown(b"a\xff")), ("\"a\\nb\"".to_owned(), "x'61ff'".to_owned()));
    }

    #[test]
    fn ignored_rows_are_told_once() {
        let ignored = IgnoredPauses::default();
        let rows = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(ignored.news(Vec::new()), None);
        assert_eq!(ignored.news(rows(&["a", "b"])).as_deref(), Some("a; b"));
        assert_eq!(ignored.news(rows(&["a", "b"])), None);
        assert_eq!(ignored.news(Vec::new()), None);
        assert_eq!(ignored.news(rows(&["a", "b"])).as_deref(), Some("a; b"));
        assert_eq!(
            ignored.news(rows(&["1", "2", "3", "4", "5", "6", "7"])).as_deref(),
            Some("1; 2; 3; 4; 5; and 2 more")
        );
    }
}
