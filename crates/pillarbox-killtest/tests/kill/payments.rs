use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::database::{BOOKINGS, Database};

/// The longest time without any progress.
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds payments, the numbers of which begin at `first`.
pub(crate) async fn add(database: &mut Database, first: usize, payments: usize) {
    let rows: Vec<String> = (first..first + payments).map(|n| format!("('p-{n}', 'payment', '{{}}')")).collect();
    let insert = format!("INSERT INTO outbox_event (event_id, event_type, payload) VALUES {}", rows.join(", "));
    database.execute(&insert).await;
}

/// The number of bookings.
pub(crate) async fn bookings(database: &mut Database) -> i64 {
    database.number(BOOKINGS).await
}

/// Waits until there are more bookings than before: what is killed then is at work.
pub(crate) async fn more_than(database: &mut Database, before: i64) {
    let since = Instant::now();
    while bookings(database).await <= before {
        assert!(since.elapsed() < PATIENCE, "no payment was booked for {PATIENCE:?}, beside the {before} before");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until nothing is left to be delivered, however long that takes, as long as it goes on.
pub(crate) async fn all_delivered(database: &mut Database) {
    let (mut done, mut since) = (0, Instant::now());
    loop {
        let pending = database.number("SELECT count(*) AS number FROM outbox_event WHERE status IN (0, 2)").await;
        if pending == 0 {
            return;
        }
        let now_done = database.number("SELECT count(*) AS number FROM outbox_event WHERE status = 1").await;
        if now_done > done {
            (done, since) = (now_done, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{pending} events are left, and none was delivered for {PATIENCE:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The number of bookings, and of payments that were booked.
pub(crate) async fn booked(database: &mut Database) -> (i64, i64) {
    (bookings(database).await, database.number("SELECT count(DISTINCT event_id) AS number FROM booking").await)
}

/// Checks that so many payments were booked once each, and that each has written one event.
pub(crate) async fn assert_each_once(database: &mut Database, payments: usize) {
    let payments = i64::try_from(payments).expect("few");
    assert_eq!(booked(database).await, (payments, payments), "bookings, and payments that were booked");
    let done = "SELECT count(*) AS number FROM outbox_event WHERE status = 1 AND event_type";
    for event_type in ["payment", "booked"] {
        let events = database.number(&format!("{done} = '{event_type}'")).await;
        assert_eq!(events, payments, "{event_type}");
    }
}
