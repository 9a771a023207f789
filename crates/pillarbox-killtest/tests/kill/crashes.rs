//! `kill -9` of the database under the handlers' transactions, and its recovery.

use std::time::Duration;

use pillarbox_core::clock::{Random as _, SystemRandom};
use tokio::time::sleep;

use crate::database::{BOOKINGS, Database, NODES};
use crate::kills::PROCESSES;
use crate::process::Process;
use crate::server::{Server, mariadb, postgres};
use crate::{kills, payments};

/// A killed database stands for so many killed processes: it takes a second or two to recover.
pub(crate) const PROCESSES_PER_DATABASE: usize = 10;
/// Payments that are added before each kill: more than are booked by then.
const PAYMENTS: usize = 200;
/// The longest time from the first booking to the kill, in milliseconds.
const LONGEST: f64 = 100.0;

const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test]
async fn on_postgres_each_payment_is_booked_once_though_the_database_is_killed() {
    each_payment_is_booked_once_though_the_database_is_killed(postgres().await).await;
}

#[tokio::test]
async fn on_mariadb_each_payment_is_booked_once_though_the_database_is_killed() {
    each_payment_is_booked_once_though_the_database_is_killed(mariadb().await).await;
}

async fn each_payment_is_booked_once_though_the_database_is_killed(mut server: Server) {
    let mut database = Database::create(&server.url()).await;
    let mut processes: Vec<Process> =
        (0..PROCESSES).map(|_| Process::start(&database.url, "multi_node", "together")).collect();
    // A process that cannot start has no database to lose.
    database.wait_for(NODES, 4, PATIENCE).await;
    let crashes = kills().div_ceil(PROCESSES_PER_DATABASE);
    for crash in 0..crashes {
        // Processes come back before the next payments, so that these are in their hands when the database dies.
        let number = i64::try_from(crash * PAYMENTS).expect("few");
        database.wait_for(BOOKINGS, number, PATIENCE).await;
        payments::add(&mut database, crash * PAYMENTS, PAYMENTS).await;
        payments::more_than(&mut database, number).await;
        sleep(Duration::from_secs_f64(SystemRandom.next_f64() * LONGEST / 1000.0)).await;
        server.kill_and_restart().await;
        database = Database::connect(&database.url).await;
    }
    payments::all_delivered(&mut database).await;
    assert!(processes.iter_mut().all(Process::runs), "no process has ended with its database");
    drop(processes);
    payments::assert_each_once(&mut database, crashes * PAYMENTS).await;
}
