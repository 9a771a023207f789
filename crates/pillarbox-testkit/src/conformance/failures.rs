use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::Fence;
use pillarbox_core::row::Change;
use pillarbox_core::store::{BegunAttempt, FailedAttempt};

use crate::Harness;
use crate::events::{Owned, event, events, first_attempt, owned, record, settle, settle_all, verdict};
use crate::nodes::owner;
use crate::run::{Db, Outcome};

fn retry(attempts: u32, error: Option<&str>) -> Change {
    Change::Retry { attempts, delay: Duration::ZERO, error: error.map(str::to_owned) }
}

fn dead(attempts: u32, error: &str) -> Change {
    Change::Dead { attempts, error: error.to_owned() }
}

/// The attempts and the errors of the failed attempts of an event's row.
async fn failures<H: Harness>(db: &Db<H>, event: &Envelope) -> Result<Vec<(u32, String)>, BoxError> {
    let failures = record(db, event).await?.failures;
    Ok(failures.into_iter().map(|failed| (failed.attempts, failed.error)).collect())
}

fn of(failures: &[(u32, &str)]) -> Vec<(u32, String)> {
    failures.iter().map(|(attempts, error)| (*attempts, (*error).to_owned())).collect()
}

/// Each failure is added, whatever the verdict, with its node and the database's time; a deferral is none. What succeeds keeps those it had,
/// and of what never failed nothing is kept.
pub(super) async fn settle_keeps_each_failed_attempt<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(5)?).await?;
    let began = store.now().await?;
    let error = "it's \"broken\": C:\\new\n\u{1}🦀\u{ffff}";
    let in_place = Change::RetryInPlace { attempts: 1, error: "no answer".to_owned() };
    let rescued = Change::Rescued { attempts: 2, error: "another way".to_owned() };
    let rounds: [&[(usize, u32, Change)]; 3] = [
        &[(0, 0, retry(1, Some(error))), (1, 0, in_place), (2, 0, retry(0, Some("not now"))), (3, 0, dead(0, "bad"))],
        &[(0, 1, retry(1, None)), (1, 1, rescued), (2, 0, retry(1, Some("late")))],
        &[(0, 1, dead(2, "never")), (2, 1, Change::Done), (4, 0, Change::Done)],
    ];
    for round in rounds {
        let verdicts: Vec<_> =
            round.iter().map(|(row, expected, change)| verdict(seqs[*row], *expected, change.clone())).collect();
        assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    }
    let ended = store.now().await?;
    assert_eq!(failures(db, &written[0]).await?, of(&[(1, error), (2, "never")]));
    assert_eq!(failures(db, &written[1]).await?, of(&[(1, "no answer"), (2, "another way")]));
    assert_eq!(failures(db, &written[2]).await?, of(&[(1, "late")]), "it is DONE by now");
    assert_eq!(failures(db, &written[3]).await?, of(&[(0, "bad")]));
    assert_eq!(record(db, &written[4]).await?.failures, []);
    for failed in record(db, &written[0]).await?.failures {
        // A clock of milliseconds may lie half of one beside that of microseconds.
        let around = |time: Timestamp, by| Timestamp::from_micros(time.as_micros() + by);
        assert!((around(began, -1000)..=around(ended, 1000)).contains(&failed.at), "{began} {failed:?} {ended}");
        assert_eq!(failed.node, node.as_str());
    }
    let listed = store.record(seqs[0]).await?.map(|record| record.failures);
    assert_eq!(listed, Some(record(db, &written[0]).await?.failures));

    let late = [verdict(seqs[0], 1, dead(2, "refused")), verdict(seqs[2], 1, dead(2, "refused"))];
    assert_eq!(settle(&*store, &node, Fence::Table, &late).await?, [seqs[0], seqs[2]]);
    assert_eq!(failures(db, &written[0]).await?, of(&[(1, error), (2, "never")]), "what is refused adds none");
    Ok(())
}

/// The oldest gives way to the eleventh, and of a long error the beginning is kept.
pub(super) async fn settle_keeps_no_more_failed_attempts_than_ten<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, vec![event()?]).await?;
    let long = |attempts: u32| format!("{attempts} {}", "é🦀".repeat(FailedAttempt::ERROR_CHARACTERS));
    for attempts in 0..12 {
        let next = attempts + 1;
        let change = if attempts % 2 == 0 {
            retry(next, Some(&long(next)))
        } else {
            Change::RetryInPlace { attempts: next, error: long(next) }
        };
        assert!(settle(&*store, &node, Fence::Table, &[verdict(seqs[0], attempts, change)]).await?.is_empty());
    }
    let kept = failures(db, &written[0]).await?;
    assert_eq!(kept.len(), FailedAttempt::KEPT);
    let cut = |attempts: u32| long(attempts).chars().take(FailedAttempt::ERROR_CHARACTERS).collect::<String>();
    assert_eq!(kept, (3..=12).map(|attempts| (attempts, cut(attempts))).collect::<Vec<_>>());
    Ok(())
}

/// A column that another program has written to keeps no verdict from being recorded.
pub(super) async fn settle_goes_on_where_another_program_wrote_the_failures<H: Harness>(db: &Db<H>) -> Outcome {
    let texts = ["{}", "7", "null", "\"[]\"", "[]", "[1, {\"attempts\": 1}]"];
    let Owned { store, node, written, seqs } = owned(db, events(texts.len())?).await?;
    let table = db.table("event");
    for (text, event) in texts.iter().zip(&written) {
        db.execute(&format!("UPDATE {table} SET failures = '{text}' WHERE event_id = '{}'", event.id())).await?;
    }
    let verdicts: Vec<_> = seqs.iter().map(|seq| verdict(*seq, 0, retry(1, Some("late")))).collect();
    assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    for (event, text) in written.iter().zip(texts) {
        assert_eq!(failures(db, event).await?, of(&[(1, "late")]), "{text}");
    }
    Ok(())
}

/// An attempt that ended with its process is one of them, once it is found; an attempt that just begins is none.
pub(super) async fn begin_attempt_adds_the_crashed_one_to_the_failures<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, vec![event()?]).await?;
    let first = first_attempt(&*store, seqs[0]).await?;
    assert!(store.begin_attempt(&node, Fence::Table, &first).await?);
    assert_eq!(failures(db, &written[0]).await?, []);
    let found = BegunAttempt { attempts: 1, error: Some("its node died".to_owned()), ..first };
    assert!(store.begin_attempt(&node, Fence::Table, &found).await?);
    assert_eq!(failures(db, &written[0]).await?, of(&[(1, "its node died")]));
    assert!(!store.begin_attempt(&node, Fence::Table, &found).await?, "it was counted");
    assert!(settle(&*store, &node, Fence::Table, &[verdict(seqs[0], 1, dead(2, "again"))]).await?.is_empty());
    assert_eq!(failures(db, &written[0]).await?, of(&[(1, "its node died"), (2, "again")]));
    Ok(())
}

/// The attempts begin anew, and those before are not forgotten.
pub(super) async fn replay_keeps_the_failed_attempts<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), event()?);
    let seqs = db.write(vec![written.clone()]).await?;
    let node = owner(&*store).await?;
    settle_all(&*store, &node, &seqs, &dead(1, "never")).await?;
    assert_eq!(store.replay(&seqs).await?, seqs);
    assert_eq!(failures(db, &written).await?, of(&[(1, "never")]));
    settle_all(&*store, &node, &seqs, &retry(1, Some("still not"))).await?;
    assert_eq!(failures(db, &written).await?, of(&[(1, "never"), (1, "still not")]));
    Ok(())
}
