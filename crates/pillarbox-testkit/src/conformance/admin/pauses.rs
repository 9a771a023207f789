//! The table of what operators have paused.

use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::store::{Admin as _, NewPause, Pause, PauseChange, PauseKind};

use crate::Harness;
use crate::events::{HOUR, Owned, delayed, events, owned, retry_in, settle_all};
use crate::run::{Db, Outcome};

fn of_type(name: &str) -> NewPause {
    NewPause::new(PauseKind::Type, name)
}

fn of_handler(name: &str) -> NewPause {
    NewPause::new(PauseKind::Handler, name)
}

fn names(pauses: &[Pause]) -> Vec<(PauseKind, &str)> {
    pauses.iter().map(|pause| (pause.kind, &*pause.name)).collect()
}

/// What is paused comes with the number of interventions: types first, each by its name to the byte.
pub(in crate::conformance) async fn interventions_tell_what_is_paused<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert!(store.interventions().await?.pauses.is_empty() && store.pauses().await?.is_empty());
    for pause in [of_handler("it's \"b\""), of_type("b"), of_type("B"), of_handler("b"), of_type("ä ")] {
        assert_eq!(store.pause(&pause).await?, PauseChange::Paused);
    }
    let told = store.interventions().await?.pauses;
    let (kind, of) = (PauseKind::Type, PauseKind::Handler);
    assert_eq!(names(&told), [(kind, "B"), (kind, "b"), (kind, "ä "), (of, "b"), (of, "it's \"b\"")]);
    assert_eq!(store.pauses().await?, told);
    Ok(())
}

/// It stays one pause, since the same time, with another note.
pub(in crate::conformance) async fn pause_twice_updates_the_reason<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let before = store.now().await?;
    let text = |text: &str| Some(text.to_owned());
    let first = NewPause { by: text("anna"), reason: text("it's broken"), length: Some(HOUR), ..of_type("a") };
    assert_eq!(store.pause(&first).await?, PauseChange::Paused);
    let paused = store.pauses().await?.pop().ok_or("it is not there")?;
    assert_eq!((paused.by.as_deref(), paused.reason.as_deref()), (Some("anna"), Some("it's broken")));
    let until = paused.until.ok_or("it has no end")?;
    assert!(paused.since >= before && until.since(paused.since) >= HOUR - Duration::from_secs(1));
    assert_eq!(store.pause(&NewPause { reason: text("ä"), ..of_type("a") }).await?, PauseChange::Updated);
    let again = Pause { by: None, reason: text("ä"), until: None, ..paused };
    assert_eq!(store.pauses().await?, [again]);
    Ok(())
}

/// It is over by itself, and begins anew if it is wanted again.
pub(in crate::conformance) async fn pause_ends_by_the_databases_clock<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let short = NewPause { length: Some(Duration::from_millis(50)), ..of_type("a") };
    // Before the pause: after it some of its time may have passed.
    let first = store.now().await?;
    assert_eq!(store.pause(&short).await?, PauseChange::Paused);
    while !store.pauses().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(store.now().await?.since(first) >= Duration::from_millis(50), "not before its time");
    assert!(store.interventions().await?.pauses.is_empty());
    assert!(!store.resume(PauseKind::Type, "a").await?, "it is over");
    assert_eq!(store.pause(&short).await?, PauseChange::Paused);
    while !store.pauses().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.pause(&of_type("a")).await?, PauseChange::Paused, "of what is over nothing is left");
    assert!(store.pauses().await?.first().is_some_and(|pause| pause.since > first && pause.until.is_none()));
    Ok(())
}

/// Nothing is paused beyond the bound, and what is can still be updated and resumed.
pub(in crate::conformance) async fn pause_is_refused_beyond_a_thousand<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    for number in 0..Pause::MAX_PAUSES {
        assert_eq!(store.pause(&of_type(&format!("t{number}"))).await?, PauseChange::Paused);
    }
    assert_eq!(store.pause(&of_handler("t0")).await?, PauseChange::TooMany);
    assert_eq!(store.pause(&of_type("t0")).await?, PauseChange::Updated);
    assert_eq!(store.interventions().await?.pauses.len(), Pause::MAX_PAUSES);
    assert!(store.resume(PauseKind::Type, "t7").await?);
    assert_eq!(store.pause(&of_handler("t0")).await?, PauseChange::Paused);
    Ok(())
}

/// One is ended once, and no other with it.
pub(in crate::conformance) async fn resume_says_if_it_was_paused<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    store.pause(&of_type("a")).await?;
    store.pause(&of_handler("a")).await?;
    for (kind, name, expected) in [
        (PauseKind::Type, "A", false),
        (PauseKind::Type, "a ", false),
        (PauseKind::Type, "a\0", false),
        (PauseKind::Type, "a", true),
        (PauseKind::Type, "a", false),
    ] {
        assert_eq!(store.resume(kind, name).await?, expected, "{kind} {name:?}");
    }
    assert_eq!(names(&store.pauses().await?), [(PauseKind::Handler, "a")]);
    Ok(())
}

/// Rows of a paused type or handler count if they are due, each once.
pub(in crate::conformance) async fn count_paused_counts_the_due_rows_that_pauses_hold<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let written = events(4)?;
    let Owned { store, node, seqs, .. } = owned(db, written.clone()).await?;
    settle_all(&*store, &node, &seqs[..1], &retry_in(Duration::ZERO)).await?;
    settle_all(&*store, &node, &seqs[1..2], &retry_in(HOUR)).await?;
    db.set_handler(written[2].id().as_str(), "h").await?;
    db.write(vec![delayed()?, Envelope::json("another", "{}")?]).await?;
    event_for(db, "h").await?;
    assert_eq!(store.count_paused().await?, 0);
    // Names are meant to the byte: what a collation takes for the same is another.
    for another in ["test.event ", "TEST.EVENT", "tést.event"] {
        store.pause(&of_type(another)).await?;
    }
    for another in ["h ", "H"] {
        store.pause(&of_handler(another)).await?;
    }
    assert_eq!(store.count_paused().await?, 0);
    store.pause(&of_type("test.event")).await?;
    let of_type_alone = store.count_paused().await?;
    store.pause(&of_handler("h")).await?;
    let with_handler = store.count_paused().await?;
    store.resume(PauseKind::Type, "test.event").await?;
    assert_eq!((of_type_alone, with_handler, store.count_paused().await?), (3, 4, 2));
    Ok(())
}

/// Writes an event of another type for a handler.
async fn event_for<H: Harness>(db: &Db<H>, handler: &str) -> Outcome {
    let event = Envelope::json("of.another.type", "{}")?;
    db.write(vec![event.clone()]).await?;
    db.set_handler(event.id().as_str(), handler).await?;
    Ok(())
}
