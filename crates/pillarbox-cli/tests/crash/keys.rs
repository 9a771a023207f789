//! The order of each key is kept across relays that are killed, stand still, join and leave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;
use tokio::time::{Instant, sleep, sleep_until};

use crate::database::{self, Database};
use crate::fleet::{Files, Relay};
use crate::kills::seeded;
use crate::sequence::Sequence;

const EVENTS: u32 = 20_000;
const KEYS: u32 = 200;
const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_secs(2);
const LEASE: Duration = Duration::from_secs(2);
const WORKERS: usize = 8;

/// Slow enough for a kill to find events under way, and a lease that a busy machine does not miss.
const ARGS: [&str; 8] = ["--mode", "partitioned", "--lease", "2s", "--workers", "8", "--delay", "4ms"];
/// All append to one file, so that it has their lines in the order in which they were written.
const FILE: &str = "all";

const DONE: &str = "SELECT count(*) FROM outbox_event WHERE status = 1";
const ORPHANS: &str = "SELECT count(*) FROM outbox_partition WHERE node_id IS NOT NULL AND node_id <> '?'
                       AND node_id NOT IN (SELECT node_id FROM outbox_node)";

#[tokio::test]
async fn on_postgres_kills_and_stalls_keep_the_order_of_each_key() {
    database::postgres(kills_and_stalls_keep_the_order_of_each_key).await;
}

#[tokio::test]
async fn on_mariadb_kills_and_stalls_keep_the_order_of_each_key() {
    database::mariadb(kills_and_stalls_keep_the_order_of_each_key).await;
}

#[tokio::test]
async fn on_postgres_joining_and_leaving_doubles_nothing_and_keeps_the_order_of_each_key() {
    database::postgres(joining_and_leaving_doubles_nothing_and_keeps_the_order_of_each_key).await;
}

#[tokio::test]
async fn on_mariadb_joining_and_leaving_doubles_nothing_and_keeps_the_order_of_each_key() {
    database::mariadb(joining_and_leaving_doubles_nothing_and_keeps_the_order_of_each_key).await;
}

async fn kills_and_stalls_keep_the_order_of_each_key(database: Arc<dyn Database>) {
    let mut random = seeded();
    let files = Files::new();
    let mut names = (0..).map(|number| format!("n{number}"));
    let mut launch = || files.launch(&*database, &names.next().unwrap(), FILE, &ARGS);
    let mut fleet = [launch(), launch(), launch()];
    database.wait_for("SELECT count(*) FROM outbox_node", 3).await;

    let mut in_flight: BTreeMap<String, u32> = BTreeMap::new();
    let (mut stalled, mut thawed_at) = (String::new(), 0);
    for round in 0..ROUNDS {
        let next_round = Instant::now() + ROUND;
        insert_round(&*database, round).await;
        sleep(Duration::from_millis(random.next_u64() % 500)).await;
        let slot = usize::try_from(random.next_u64()).unwrap() % fleet.len();
        let of_this_node =
            |what: &str| format!("SELECT {what} FROM outbox_node WHERE node_id LIKE '{}-%'", fleet[slot].name);
        if round == ROUNDS / 2 {
            // On a slow machine the one of the round before is still starting.
            database.wait_for(&of_this_node("count(*)"), 1).await;
        }
        // Frozen first, so that what it holds can be read before it is gone; what it has sent by then is carried out.
        fleet[slot].freeze();
        sleep(Duration::from_millis(50)).await;
        for event in written_and_not_done(&*database, &files, &fleet[slot]).await {
            *in_flight.entry(event).or_default() += 1;
        }
        if round == ROUNDS / 2 {
            stalled = database.texts(&of_this_node("node_id")).await.remove(0);
            sleep(LEASE + LEASE / 2).await;
            thawed_at = Sequence::of(&files.path(FILE)).0.len();
            fleet[slot].thaw();
        } else {
            let next = launch();
            std::mem::replace(&mut fleet[slot], next).kill();
        }
        assert_eq!(database.count(ORPHANS).await, 0, "partitions belong to nodes that are there");
        sleep_until(next_round).await;
    }
    database.wait_for(DONE, EVENTS.into()).await;
    stop(fleet).await;

    let mut written = Sequence::of(&files.path(FILE));
    written.assert_first_deliveries_in_order();
    // What it had begun goes on where it stood still: others have its partitions by then, and its verdicts are refused.
    let late = written.take_late(&stalled, thawed_at);
    assert!(late.len() <= 2 * WORKERS && late.values().all(|lines| *lines == 1), "late: {late:?}");
    written.assert_one_owner_at_a_time(&database.epochs().await);

    let calls = written.calls();
    let is_lost = |event: &String| !calls.contains_key(event.as_str()) && !late.contains_key(event);
    let lost: Vec<_> = (0..EVENTS).map(|event| event.to_string()).filter(is_lost).collect();
    assert!(lost.is_empty(), "never delivered: {lost:?}");
    let explained = |event: &str| in_flight.get(event).copied().unwrap_or(0);
    let odd: Vec<_> = calls.iter().filter(|(event, lines)| **lines > 1 + explained(event)).collect();
    assert!(odd.is_empty(), "delivered more often than kills explain: {odd:?}");
    let held: u32 = in_flight.values().sum();
    assert!(held > 0, "the kills have found nothing under way, and this test nothing out");
    let doubled: u32 = calls.values().map(|lines| lines - 1).sum();
    println!("{doubled} duplicates of {held} events in flight; {} late lines of the one that stood still", late.len());
}

async fn joining_and_leaving_doubles_nothing_and_keeps_the_order_of_each_key(database: Arc<dyn Database>) {
    let mut random = seeded();
    let files = Files::new();
    let mut names = (0..).map(|number| format!("n{number}"));
    let mut launch = || files.launch(&*database, &names.next().unwrap(), FILE, &ARGS);
    let mut fleet = vec![launch(), launch()];
    let mut left = Vec::new();
    database.wait_for("SELECT count(*) FROM outbox_node", 2).await;
    for round in 0..ROUNDS {
        insert_round(&*database, round).await;
        fleet.push(launch());
        sleep(Duration::from_millis(500 + random.next_u64() % 500)).await;
        let index = usize::try_from(random.next_u64()).unwrap() % fleet.len();
        let leaving = fleet.swap_remove(index);
        leaving.terminate();
        left.push(leaving);
        sleep(Duration::from_millis(random.next_u64() % 500)).await;
    }
    database.wait_for(DONE, EVENTS.into()).await;
    stop(fleet).await;
    for relay in left {
        relay.ended().await;
    }

    let written = Sequence::of(&files.path(FILE));
    let calls = written.calls();
    let twice: Vec<_> = calls.iter().filter(|(_, lines)| **lines != 1).collect();
    assert_eq!((calls.len(), written.0.len()), (20_000, 20_000), "each once: {twice:?}");
    written.assert_first_deliveries_in_order();
    let epochs = database.epochs().await;
    written.assert_one_owner_at_a_time(&epochs);
    println!("partitions changed hands {} times", epochs.iter().sum::<u32>());
    assert_eq!(database.count("SELECT count(*) FROM outbox_event WHERE attempts <> 0").await, 0);
}

/// The events of a round, in statements of a size that every database takes.
async fn insert_round(database: &dyn Database, round: u32) {
    const EACH: u32 = EVENTS / ROUNDS;
    const STATEMENT: u32 = 1_000;
    for first in (round * EACH..(round + 1) * EACH).step_by(STATEMENT as usize) {
        database.insert_of_keys(first..first + STATEMENT, KEYS).await;
    }
}

/// What others deliver again if this relay does not go on.
async fn written_and_not_done(database: &dyn Database, files: &Files, relay: &Relay) -> Vec<String> {
    let written = Sequence::of(&files.path(FILE)).written_by(&relay.name);
    let pending = database.texts("SELECT event_id FROM outbox_event WHERE status <> 1").await;
    pending.into_iter().filter(|event| written.contains(event)).collect()
}

async fn stop(fleet: impl IntoIterator<Item = Relay>) {
    for relay in fleet {
        relay.terminate();
        relay.ended().await;
    }
}
