//! `kill -9` of processes: four deliver, and one after the other is killed at any moment and started again.

use std::time::Duration;

use pillarbox_core::clock::{Random as _, SystemRandom};
use tokio::time::sleep;

use crate::database::{Database, on_mysql, on_postgres, on_sqlite};
use crate::process::Process;
use crate::{kills, payments};

pub(crate) const PROCESSES: usize = 4;
/// Payments that are added before each kill.
const PAYMENTS: usize = 20;
/// The longest time from a booking to the next kill, in milliseconds: not all that was added is booked by then.
const LONGEST: f64 = 20.0;
/// Kills among which one hits a process between two transactions. It is one of the first twenty.
const MANY: usize = 400;

#[tokio::test]
async fn on_postgres_each_payment_is_booked_once_by_many_nodes() {
    on_postgres(|database| each_payment_is_booked_once(database, "multi_node")).await;
}

#[tokio::test]
async fn on_postgres_each_payment_is_booked_once_in_partitions() {
    on_postgres(|database| each_payment_is_booked_once(database, "partitioned")).await;
}

#[tokio::test]
async fn on_mysql_each_payment_is_booked_once() {
    on_mysql(|database| each_payment_is_booked_once(database, "multi_node")).await;
}

#[tokio::test]
async fn on_sqlite_each_payment_is_booked_once() {
    on_sqlite(|database| each_payment_is_booked_once(database, "multi_node")).await;
}

#[tokio::test]
async fn on_postgres_a_booking_apart_from_its_event_is_seen_twice() {
    on_postgres(a_booking_apart_from_its_event_is_seen_twice).await;
}

#[tokio::test]
async fn on_mysql_a_booking_apart_from_its_event_is_seen_twice() {
    on_mysql(a_booking_apart_from_its_event_is_seen_twice).await;
}

#[tokio::test]
async fn on_sqlite_a_booking_apart_from_its_event_is_seen_twice() {
    on_sqlite(a_booking_apart_from_its_event_is_seen_twice).await;
}

async fn each_payment_is_booked_once(database: Database, mode: &'static str) {
    let mut killing = Killing::start(database, mode, "together");
    for _ in 0..kills() {
        killing.kill_one().await;
    }
    let Killing { mut database, payments, processes, .. } = killing;
    payments::all_delivered(&mut database).await;
    drop(processes);
    payments::assert_each_once(&mut database, payments).await;
}

/// Shows that these kills find the mistake that they are there for.
async fn a_booking_apart_from_its_event_is_seen_twice(database: Database) {
    let mut killing = Killing::start(database, "multi_node", "apart");
    for _ in 0..MANY {
        killing.kill_one().await;
        let (bookings, booked) = payments::booked(&mut killing.database).await;
        if bookings > booked {
            return;
        }
    }
    panic!("{MANY} kills have hit no process between its booking and the end of its event");
}

/// Processes of which one after the other is killed, and what they are to book.
struct Killing {
    database: Database,
    mode: &'static str,
    commit: &'static str,
    processes: Vec<Process>,
    payments: usize,
    kills: usize,
}

impl Killing {
    fn start(database: Database, mode: &'static str, commit: &'static str) -> Self {
        let processes = (0..PROCESSES).map(|_| Process::start(&database.url, mode, commit)).collect();
        Self { database, mode, commit, processes, payments: 0, kills: 0 }
    }

    /// Adds payments, and once they are being booked, kills the oldest process and starts another.
    async fn kill_one(&mut self) {
        let before = payments::bookings(&mut self.database).await;
        payments::add(&mut self.database, self.payments, PAYMENTS).await;
        self.payments += PAYMENTS;
        payments::more_than(&mut self.database, before).await;
        sleep(Duration::from_secs_f64(SystemRandom.next_f64() * LONGEST / 1000.0)).await;
        if self.kills.is_multiple_of(5) {
            self.database.cut().await;
        }
        self.kills += 1;
        drop(self.processes.remove(0));
        self.processes.push(Process::start(&self.database.url, self.mode, self.commit));
    }
}
