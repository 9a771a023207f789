use std::pin::pin;

use futures_util::FutureExt as _;
use pillarbox_core::store::CANCELLED;
use tokio::time::advance;

use super::*;

const DELIVERED: EventEnd = EventEnd::Delivered { positions: Vec::new() };

fn id(text: &str) -> EventId {
    EventId::from_stored(text)
}

fn row(event: &str, handler: Option<&str>, status: Status, error: Option<&str>) -> RowState {
    let (handler, error) = (handler.map(Box::from), error.map(str::to_owned));
    RowState { event_id: id(event), handler, status, error, delivered_as: None }
}

/// Polls once, and returns the time since the last poll.
async fn next_poll(followed: &Followed) -> Duration {
    let began = Instant::now();
    let due = followed.due().await;
    followed.tell(&due, vec![row("a", None, Status::New, None)]);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_looked_for_at_once_then_each_10_ms_and_each_second_at_last() {
    let followed = Followed::new(false);
    assert!(pin!(followed.due()).now_or_never().is_none(), "nobody waits");
    let waiter = followed.join(id("a"));
    assert_eq!(next_poll(&followed).await, Duration::ZERO);
    // Timers of the runtime have a resolution of a millisecond.
    for (age, pause) in [(0, 10), (900, 10), (10_000, 109), (60_000, 710), (600_000, 1000)] {
        advance(Duration::from_millis(age)).await;
        next_poll(&followed).await;
        let found = next_poll(&followed).await.as_millis();
        assert!((pause..=pause + 2).contains(&found), "{found} ms, and not {pause}, after {age} ms more");
    }
    // A later waiter is answered as soon as the first was.
    let later = followed.join(id("a"));
    assert_eq!(next_poll(&followed).await, Duration::ZERO);
    assert!(next_poll(&followed).await <= Duration::from_millis(11));
    drop((waiter, later));
    assert!(pin!(followed.due()).now_or_never().is_none(), "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn events_that_nobody_waits_for_any_more_are_forgotten() -> Result<(), WaitError> {
    let followed = Followed::new(false);
    let (one, other) = (followed.join(id("a"))?, followed.join(id("a"))?);
    let due = followed.due().await;
    drop(one);
    assert_eq!(followed.len(), 1);
    drop(other);
    assert_eq!(followed.len(), 0);
    followed.tell(&due, vec![row("a", None, Status::Done, None)]);
    let mut again = followed.join(id("a"))?;
    assert!(again.end().now_or_never().is_none(), "it has not been looked for again");
    let due = followed.due().await;
    followed.tell(&due, vec![row("a", None, Status::Done, None)]);
    assert_eq!((followed.len(), again.end().await?), (0, DELIVERED));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_event_that_another_database_does_not_have_is_not_known_to_be_gone() -> Result<(), WaitError> {
    let followed = Followed::new(false);
    let mut waiter = followed.join(id("a"))?;
    let due = followed.due().await;
    followed.tell(&due, vec![row("a", None, Status::New, None)]);
    assert_eq!(waiter.progress(), Progress::Pending);
    // A replica that has received it and not replayed it yet.
    followed.forget();
    let due = followed.due().await;
    followed.tell(&due, Vec::new());
    assert_eq!(waiter.progress(), Progress::Unseen);
    assert!(waiter.end().now_or_never().is_none());
    let due = followed.due().await;
    followed.tell(&due, vec![row("a", None, Status::New, None)]);
    let due = followed.due().await;
    followed.tell(&due, Vec::new());
    assert_eq!(waiter.end().await?, EventEnd::Gone);
    Ok(())
}

/// It may have read the event before an operator replayed it, and before whoever joined meanwhile has written it.
#[tokio::test(start_paused = true)]
async fn the_answer_of_a_statement_is_for_those_who_had_joined_before_it() -> Result<(), WaitError> {
    let dead = || vec![row("a", None, Status::Dead, Some("no"))];
    let followed = Followed::new(false);
    let mut early = followed.join(id("a"))?;
    let first = followed.due().await;
    let mut late = followed.join(id("a"))?;
    followed.tell(&first, dead());
    assert!(matches!(early.end().now_or_never(), Some(Ok(EventEnd::Dead { .. }))));
    assert!(late.end().now_or_never().is_none(), "the statement was sent before");
    assert_eq!((late.progress(), followed.len()), (Progress::Pending, 1));
    drop(early);
    let second = followed.due().now_or_never().expect("it is asked for at once");
    followed.tell(&second, vec![row("a", None, Status::New, None)]);
    assert!(late.end().now_or_never().is_none(), "it was replayed");
    let third = followed.due().await;
    followed.tell(&third, dead());
    assert!(matches!(late.end().now_or_never(), Some(Ok(EventEnd::Dead { .. }))));
    assert_eq!(followed.len(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_statement_asks_for_a_thousand_events_and_the_next_for_the_rest() -> Result<(), WaitError> {
    let followed = Followed::new(false);
    let waiters = (0..1500).map(|number| followed.join(id(&number.to_string()))).collect::<Result<Vec<_>, _>>()?;
    let first = followed.due().await;
    followed.tell(&first, Vec::new());
    let second = followed.due().await;
    assert_eq!((first.ids.len(), second.ids.len()), (1000, 500));
    assert!(second.ids.iter().all(|id| !first.ids.contains(id)));
    drop(waiters);
    assert_eq!(followed.len(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_events_are_waited_for_and_no_more() -> Result<(), WaitError> {
    let followed = Followed::new(false);
    let waiters =
        (0..MAX_FOLLOWED).map(|number| followed.join(id(&number.to_string()))).collect::<Result<Vec<_>, _>>()?;
    assert!(matches!(followed.join(id("one more")), Err(WaitError::TooMany)));
    drop((followed.join(id("7"))?, waiters));
    assert_eq!(followed.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_shutdown_ends_waiting() -> Result<(), WaitError> {
    let followed = Followed::new(false);
    let mut waiter = followed.join(id("a"))?;
    followed.close();
    assert!(matches!(waiter.end().await, Err(WaitError::Stopped)));
    assert!(matches!(followed.join(id("a")), Err(WaitError::Stopped)));
    Ok(())
}

#[test]
fn an_event_has_ended_when_all_of_its_rows_have() {
    use Status::{Dead, Done, New, Retry};
    let of = |rows: &[(&str, Status, Option<&str>)]| {
        let rows = rows.iter().map(|(handler, status, error)| row("a", Some(handler), *status, *error));
        progress(rows.collect(), &Progress::Pending)
    };
    let dead =
        |handler: &str| Progress::Ended(EventEnd::Dead { handler: Some(handler.into()), error: "no".to_owned() });
    let no = Some("no");
    assert_eq!(of(&[("x", Done, None), ("y", New, None)]), Progress::Pending);
    assert_eq!(of(&[("x", Dead, no), ("y", Retry, None)]), Progress::Pending);
    assert_eq!(of(&[("y", Dead, no), ("x", Dead, no)]), dead("x"));
    assert_eq!(of(&[("x", Done, Some(CANCELLED)), ("y", Dead, no)]), dead("y"));
    assert_eq!(of(&[("x", Done, Some(CANCELLED)), ("y", Done, None)]), Progress::Ended(EventEnd::Cancelled));
    assert_eq!(of(&[("x", Done, no), ("y", Done, None)]), Progress::Ended(DELIVERED), "by a fallback");
    assert_eq!(of(&[]), Progress::Ended(EventEnd::Gone));
    let at = |handler: &str, position: Option<&str>| RowState {
        delivered_as: position.map(str::to_owned),
        ..row("a", Some(handler), Done, None)
    };
    let positions = [("x", "s/2"), ("z", "t/1")]
        .map(|(handler, position)| DeliveredAs { handler: Some(handler.into()), position: position.to_owned() });
    let rows = vec![at("z", Some("t/1")), at("y", None), at("x", Some("s/2"))];
    let delivered = EventEnd::Delivered { positions: positions.to_vec() };
    assert_eq!(progress(rows, &Progress::Pending), Progress::Ended(delivered));
    assert_eq!(progress(Vec::new(), &Progress::Unseen), Progress::Unseen);
}
