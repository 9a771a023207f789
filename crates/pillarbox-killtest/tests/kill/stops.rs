//! A process stands still (SIGSTOP) between the completion of its event and the commit, for longer than its lease: the fence holds the
//! others up until the database ends the session, then another node books the payment, and the commit of the first fails when it goes on.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::database::{BOOKINGS, Database, NODES, on_mysql, on_postgres, on_sqlite};
use crate::payments;
use crate::process::{Held, Process};

const LEASE: Duration = Duration::from_secs(1);
/// The time after which the database ends a session that stands still in a transaction: PostgreSQL by the completion itself, MariaDB and
/// MySQL by a setting of the handlers' pool.
const SESSION_ENDS: Duration = Duration::from_secs(5);
/// The time that another node takes besides, on a machine that is busy with other tests.
const TAKEOVER: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn on_postgres_a_payment_of_a_stopped_process_is_booked_once() {
    on_postgres(|database| a_payment_of_a_stopped_process_is_booked_once(database, "multi_node")).await;
}

#[tokio::test]
async fn on_postgres_a_payment_of_a_stopped_process_is_booked_once_in_partitions() {
    on_postgres(|database| a_payment_of_a_stopped_process_is_booked_once(database, "partitioned")).await;
}

#[tokio::test]
async fn on_mysql_a_payment_of_a_stopped_process_is_booked_once() {
    on_mysql(|database| a_payment_of_a_stopped_process_is_booked_once(database, "multi_node")).await;
}

#[tokio::test]
async fn on_mysql_a_payment_of_a_stopped_process_is_booked_once_in_partitions() {
    on_mysql(|database| a_payment_of_a_stopped_process_is_booked_once(database, "partitioned")).await;
}

/// SQLite has no server that could end a session. Nobody writes until the process goes on, and then its commit counts.
#[tokio::test]
async fn on_sqlite_a_stopped_process_keeps_the_lock_and_commits_when_it_goes_on() {
    on_sqlite(async |mut database| {
        let (stopped, hold, other) = stop_one_before_its_commit(&mut database, "multi_node").await;
        sleep(3 * LEASE).await;
        assert_eq!(database.number(BOOKINGS).await, 0, "the other process cannot write");
        stopped.resume();
        drop(hold);
        database.wait_for(BOOKINGS, 1, PATIENCE).await;
        go_on(database, stopped, other).await;
    })
    .await;
}

/// The operating system frees its lock.
#[tokio::test]
async fn on_sqlite_a_payment_of_a_stopped_process_that_is_killed_is_booked_once() {
    on_sqlite(async |mut database| {
        let (stopped, hold, other) = stop_one_before_its_commit(&mut database, "multi_node").await;
        drop((stopped, hold));
        database.wait_for(BOOKINGS, 1, PATIENCE).await;
        let another = Process::start(&database.url, "multi_node", "together");
        go_on(database, another, other).await;
    })
    .await;
}

async fn a_payment_of_a_stopped_process_is_booked_once(mut database: Database, mode: &'static str) {
    let (stopped, hold, other) = stop_one_before_its_commit(&mut database, mode).await;
    let since = Instant::now();
    database.wait_for(BOOKINGS, 1, PATIENCE).await;
    let held_up = since.elapsed();
    assert!(held_up < SESSION_ENDS + LEASE + TAKEOVER, "the others were held up for {held_up:?}");
    stopped.resume();
    drop(hold);
    go_on(database, stopped, other).await;
}

/// Starts two processes and stops that which has a payment, between its completion and its commit.
async fn stop_one_before_its_commit(database: &mut Database, mode: &str) -> (Process, Held, Process) {
    let (first, first_hold) = Process::start_held(&database.url, mode);
    let (second, second_hold) = Process::start_held(&database.url, mode);
    database.wait_for(NODES, 2, PATIENCE).await;
    payments::add(database, 0, 1).await;
    tokio::select! {
        held = first_hold.completed() => {
            first.stop();
            (first, held, second)
        }
        held = second_hold.completed() => {
            second.stop();
            (second, held, first)
        }
    }
}

/// Both processes book further payments, and each of all is booked once.
async fn go_on(mut database: Database, mut stopped: Process, mut other: Process) {
    database.wait_for(NODES, 2, PATIENCE).await;
    payments::add(&mut database, 1, 20).await;
    payments::all_delivered(&mut database).await;
    assert!(stopped.runs() && other.runs(), "neither process has ended");
    // The one that stood still serves as before.
    drop(other);
    payments::add(&mut database, 21, 20).await;
    payments::all_delivered(&mut database).await;
    payments::assert_each_once(&mut database, 41).await;
}
