use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::AbandonedThreads;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::write::NewRow;
use tokio_util::sync::CancellationToken;

use super::backlogged::REFILL_TIME;
use super::*;
use crate::queue::Classes;

const CAPACITY: usize = 64;

fn key_lanes(capacity: usize, workers: usize, failing: FailingKey) -> KeyedQueue {
    let most = Limits { rows: capacity, bytes: usize::MAX };
    KeyedQueue::new(
        capacity,
        workers,
        failing,
        Arc::new(FairShares::new(Classes::one(), workers, most)),
        Arc::default(),
        deliverer(),
    )
}

/// A queue of all partitions.
fn queue_of(capacity: usize, workers: usize, failing: FailingKey) -> KeyedQueue {
    let queue = key_lanes(capacity, workers, failing);
    queue.assign(Partitions::ALL);
    queue
}

fn queue(failing: FailingKey) -> KeyedQueue {
    queue_of(CAPACITY, 2, failing)
}

fn deliverer() -> Arc<DeliveringNode> {
    Arc::new(DeliveringNode {
        node: NodeId::from_stored("a-1"),
        lost: CancellationToken::new(),
        abandoned: AbandonedThreads::default(),
        writer: std::sync::Weak::new(),
    })
}

fn row(seq: i64, key: &str) -> Row {
    let event = Envelope::builder("t").key(key).payload_json("{}").build().expect("valid");
    Row::fresh(&NewRow::new(event), seq, Timestamp::from_micros(0))
}

fn key(key: &str) -> OrderKey {
    OrderKey { handler: None, key: key.into() }
}

/// The source of what a fetch reads from the bottom.
fn source(fetch: u64) -> Source {
    Source { fetch, floor: 0, refill: false, class: None, since: Instant::now() }
}

/// The source of what a fetch of backlogged keys reads above `floor`.
fn refill_above(floor: i64, fetch: u64) -> Source {
    Source { floor, refill: true, ..source(fetch) }
}

/// Begins a fetch.
fn begin(queue: &KeyedQueue) -> Source {
    source(queue.begin_fetch().number)
}

/// Queues what a fetch has read, and returns the rows that were refused.
fn push(queue: &KeyedQueue, rows: impl IntoIterator<Item = Row>, source: Source) -> Vec<i64> {
    queue.push(rows.into_iter().map(|row| (Arc::new(row), PriorAttempt::Clean)), source).0
}

/// Reads rows as one fetch, and returns those that were refused.
fn read(queue: &KeyedQueue, rows: &[(i64, &str)]) -> Vec<i64> {
    push(queue, rows.iter().map(|(seq, key)| row(*seq, key)), begin(queue))
}

/// All that can run now.
fn running(queue: &KeyedQueue) -> Vec<i64> {
    queue.pop_more(Class::FIRST, usize::MAX, |_| true).iter().map(|item| item.row.seq).collect()
}

/// A queue that has read `rows`, of which those of `first` run.
fn running_of(rows: &[(i64, &str)], first: &[i64]) -> KeyedQueue {
    let queue = queue(FailingKey::Wait);
    read(&queue, rows);
    assert_eq!(running(&queue), first);
    queue
}

fn dead() -> Change {
    Change::Dead { attempts: 1, error: String::new() }
}

#[test]
fn of_each_key_the_lowest_runs_and_the_others_wait() {
    let queue = queue(FailingKey::Wait);
    assert!(read(&queue, &[(2, "a"), (3, "b"), (4, "a")]).is_empty());
    assert!(read(&queue, &[(1, "a")]).is_empty(), "one that was committed late");
    assert_eq!(running(&queue), [1, 3]);
    assert!(running(&queue).is_empty());
    queue.ended(1, Some(&Change::Done));
    assert_eq!(running(&queue), [2]);
    queue.ended(2, Some(&Change::Done));
    queue.ended(3, Some(&Change::Done));
    assert_eq!(running(&queue), [4]);
    queue.ended(4, Some(&Change::Done));
    let state = queue.state.lock();
    assert!(state.keys.is_empty() && state.running.is_empty(), "nothing is remembered of what is over");
}

#[test]
fn behind_one_that_fails_nothing_is_taken_until_the_table_knows() {
    let queue = running_of(&[(1, "a"), (2, "a"), (3, "a"), (4, "b")], &[1, 4]);
    assert_eq!(queue.ended(1, Some(&dead())).dropped, [2, 3]);
    assert_eq!(queue.depth(), 0);
    assert_eq!(read(&queue, &[(2, "a")]), [2], "not recorded yet");
    let under_way = begin(&queue);
    assert_eq!(queue.recorded([(1, true)]), None);
    assert_eq!(push(&queue, [row(2, "a")], under_way), [2], "read before it was recorded");
    assert!(read(&queue, &[(2, "a")]).is_empty(), "read after: the table would have kept it back");
}

#[test]
fn behind_a_row_that_is_no_event_nothing_is_taken_until_the_table_knows() {
    let queue = queue(FailingKey::Wait);
    read(&queue, &[(1, "a"), (2, "a"), (4, "a"), (5, "b")]);
    let key = row(3, "a").order_key().expect("a key");
    assert_eq!(queue.failed(&key, 3, &dead()), Some(vec![4]));
    assert_eq!(read(&queue, &[(4, "a"), (6, "a")]), [4, 6], "not recorded yet");
    assert_eq!(running(&queue), [1, 5]);
    queue.ended(1, Some(&Change::Done));
    assert_eq!(running(&queue), [2], "it stands before");
    queue.ended(2, Some(&Change::Done));
    queue.recorded([1, 2, 3].map(|seq| (seq, true)));
    assert!(read(&queue, &[(4, "a")]).is_empty(), "the table would have kept it back");
    assert_eq!(key_lanes(CAPACITY, 2, FailingKey::Continue).failed(&key, 3, &dead()), Some(vec![]));
}

#[test]
fn the_table_has_no_heads_if_it_was_seen_to_have_none_and_nothing_failed_since() {
    let queue = queue(FailingKey::Wait);
    let begin = || queue.begin_fetch();
    let first = begin();
    assert!(first.heads, "nothing is known");
    push(&queue, [row(1, "a"), row(2, "b")], source(first.number));
    queue.saw_heads(first.number, false);
    assert!(!begin().heads);
    assert_eq!(running(&queue), [1, 2]);
    let under_way = begin();
    queue.ended(1, Some(&dead()));
    queue.saw_heads(under_way.number, false);
    let unrecorded = begin();
    assert!(unrecorded.heads, "one has failed since that fetch began");
    queue.saw_heads(unrecorded.number, false);
    queue.recorded([(1, true)]);
    assert!(begin().heads, "it was recorded since that fetch began");
    let after = begin();
    queue.saw_heads(after.number, false);
    assert!(!begin().heads, "it was replayed meanwhile");
    queue.ended(2, Some(&Change::Done));
    assert!(!begin().heads);
    let unnoticed = begin();
    queue.saw_heads(unnoticed.number, true);
    assert!(begin().heads, "whoever made it one");
    let after = begin();
    queue.saw_heads(after.number, false);
    assert!(!begin().heads);
    queue.assign(Partitions::from(0..=127));
    assert!(begin().heads, "others may have failed before");
}

#[test]
fn one_that_was_waited_for_makes_the_table_be_read_when_it_is_done() {
    let queue = queue(FailingKey::Wait);
    let retried = Row { status: Status::Retry, attempts: 1, timed: true, ..row(1, "a") };
    push(&queue, [retried], begin(&queue));
    assert_eq!(running(&queue), [1]);
    queue.ended(1, Some(&Change::Done));
    assert_eq!(queue.recorded([(7, true), (1, true)]), Some(1));
    assert_eq!(queue.recorded([(1, true)]), None, "once");
}

/// Its row is gone, or the database does not take the verdict: then nothing in the table keeps the key waiting.
#[test]
fn a_failure_that_is_not_recorded_makes_the_table_be_read_from_there() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    assert_eq!(queue.ended(1, Some(&dead())).dropped, [2]);
    assert_eq!(queue.recorded([(1, false)]), Some(1));
    let begun = queue.begin_fetch();
    assert_eq!(begun.freed, Some(1));
    assert!(push(&queue, [row(2, "a")], source(begun.number)).is_empty());
}

/// However small the memory is, one key takes no more than its share.
#[test]
fn a_small_memory_is_shared_as_well() {
    let queue = queue_of(20, 8, FailingKey::Wait);
    let refused = read(&queue, &[(1, "slow"), (2, "slow"), (3, "slow"), (4, "other")]);
    assert_eq!(refused, [2, 3]);
    assert_eq!(running(&queue), [1, 4]);
    assert!(queue.room().is_some());
}

#[test]
fn failing_key_setting_decides_whether_the_key_goes_on() {
    let retry = Change::Retry { attempts: 1, delay: Duration::ZERO, error: None };
    let table = [
        (FailingKey::Wait, &retry, false),
        (FailingKey::SkipDead, &retry, false),
        (FailingKey::SkipDead, &dead(), true),
        (FailingKey::Continue, &retry, true),
        (FailingKey::Continue, &dead(), true),
    ];
    for (policy, change, goes_on) in table {
        let queue = queue(policy);
        read(&queue, &[(1, "a"), (2, "a")]);
        assert_eq!(running(&queue), [1]);
        queue.ended(1, Some(change));
        assert_eq!(running(&queue).len(), usize::from(goes_on), "{policy:?} {change:?}");
    }
}

#[test]
fn a_key_with_much_to_do_leaves_room_for_others() {
    let queue = queue(FailingKey::Wait);
    let hot: Vec<(i64, &str)> = (1..=40).map(|seq| (seq, "hot")).collect();
    let refused = read(&queue, &hot);
    assert_eq!(refused, (17..=40).collect::<Vec<_>>(), "a quarter of the room");
    assert_eq!(queue.backlogged().len(), 1);
    assert_eq!(read(&queue, &[(41, "hot"), (42, "cold")]), [41], "nothing above what was left behind");
    assert_eq!(queue.refill(1000, Instant::now()), None);
    for seq in 1..=8 {
        assert!(running(&queue).contains(&seq));
        queue.ended(seq, Some(&Change::Done));
    }
    let slowly = Instant::now() + 100 * REFILL_TIME;
    let refill = queue.refill(1000, slowly).expect("half of it is gone");
    assert_eq!((&*refill.keys, refill.floor, refill.wanted), (&[key("hot")][..], 0, 8));
    let fetch = queue.begin_fetch().number;
    let rows = (17..=24).map(|seq| row(seq, "hot"));
    assert!(push(&queue, rows, refill_above(0, fetch)).is_empty());
    queue.refilled(&refill.keys, fetch, 24, i64::MAX);
    assert_eq!(queue.backlogged().len(), 1, "there may be more");
    queue.refilled(&refill.keys, fetch, i64::MAX, i64::MAX);
    assert!(queue.backlogged().is_empty());
}

/// Makes keys backlogged that have used up what was read of them, each of so many events.
fn backlog(queue: &KeyedQueue, keys: &[&str], share: i64) {
    for seq in 1..=share + 1 {
        let base = (seq - 1) * keys.len() as i64;
        let rows: Vec<(i64, &str)> = (base..).zip(keys).map(|(seq, key)| (seq, *key)).collect();
        read(queue, &rows);
    }
    assert_eq!(queue.backlogged().len(), keys.len());
    use_up(queue);
}

/// Handles all that is in memory.
fn use_up(queue: &KeyedQueue) {
    loop {
        let running = running(queue);
        if running.is_empty() {
            break;
        }
        for seq in running {
            queue.ended(seq, Some(&Change::Done));
        }
    }
}

#[test]
fn all_keys_that_are_behind_are_read_at_once_and_by_their_pace() {
    // Two fast keys use up two events each, two slow ones one. Half of the room is shared by those that are fast enough.
    let table = [(1000 * REFILL_TIME, 6), (REFILL_TIME / 2, 4 + 4 + 1 + 1), (REFILL_TIME / 1000, 4 * ((200 - 2) / 4))];
    for (elapsed, wanted) in table {
        let queue = queue_of(400, 100, FailingKey::Wait);
        let keys = ["a", "b", "c", "d"];
        backlog(&queue, &keys, 2);
        let slowly = Instant::now() + 1000 * REFILL_TIME;
        let refill = queue.refill(1000, slowly).expect("all need a refill");
        assert_eq!((refill.keys.len(), refill.wanted), (4, 8), "slow ones get their share");
        let fetch = queue.begin_fetch().number;
        let rows = (100..108).zip(keys.iter().cycle()).map(|(seq, key)| row(seq, key));
        assert_eq!(push(&queue, rows, refill_above(0, fetch)), [0; 0]);
        for _ in 0..2 {
            for seq in running(&queue) {
                if seq % 4 < 2 {
                    queue.ended(seq, Some(&Change::Done));
                }
            }
        }
        let refill = queue.refill(1000, slowly + elapsed).expect("two are empty");
        let mut read: Vec<&str> = refill.keys.iter().map(|key| &*key.key).collect();
        read.sort_unstable();
        assert_eq!((read, refill.wanted), (keys.into(), wanted), "in {elapsed:?}");
    }
}

#[test]
fn a_refill_names_no_more_keys_than_it_has_rows_for() {
    let queue = queue_of(400, 100, FailingKey::Wait);
    backlog(&queue, &["a", "b", "c", "d", "e"], 2);
    let refill = queue.refill(5, Instant::now() + 1000 * REFILL_TIME).expect("all need a refill");
    assert_eq!((refill.keys.len(), refill.wanted), (3, 5));
}

/// Otherwise a node that owns few partitions would read rows of others, or all of them in one statement for each.
#[test]
fn a_refill_reads_one_run_of_partitions() {
    let queue = queue(FailingKey::Wait);
    let (a, b) = (row(1, "a").partition.expect("stamped"), row(1, "b").partition.expect("stamped"));
    let mut active = Partitions::from(a..=a);
    active.insert(b);
    assert_eq!(active.runs().len(), 2, "{a} and {b} are apart");
    queue.assign(active);
    backlog(&queue, &["a", "b"], 16);
    let refill = queue.refill(1000, Instant::now()).expect("both need a refill");
    let expected = if *refill.keys == [key("a")] { a..=a } else { b..=b };
    assert_eq!((refill.keys.len(), refill.partitions), (1, expected));
}

#[test]
fn a_key_is_read_from_where_it_is_known_and_complete() {
    let queue = queue_of(400, 100, FailingKey::Wait);
    backlog(&queue, &["a", "b"], 2);
    let refill = || queue.refill(1000, Instant::now() + 1000 * REFILL_TIME).expect("both need a refill");
    let fetched = |rows: &[(i64, &str)], seen, safe_seq| {
        let refill = refill();
        let fetch = queue.begin_fetch().number;
        let rows = rows.iter().map(|(seq, key)| row(*seq, key));
        let refused = push(&queue, rows, refill_above(refill.floor, fetch));
        queue.refilled(&refill.keys, fetch, seen, safe_seq);
        use_up(&queue);
        refused
    };
    assert_eq!(fetched(&[(10, "a"), (11, "a"), (12, "a"), (13, "b")], 13, 100), [12], "no more than its share");
    assert_eq!(refill().floor, 11, "below what was left");
    assert_eq!(fetched(&[(12, "a"), (14, "b"), (30, "a")], 30, 20), [0; 0]);
    assert_eq!(refill().floor, 20, "below what may still be committed");
    queue.reread_from(15);
    assert_eq!(refill().floor, 14);
    queue.reread_from(0);
    assert_eq!(refill().floor, 0);
    assert_eq!(fetched(&[(31, "a"), (32, "a"), (33, "a")], i64::MAX, 100), [33]);
    assert_eq!(queue.backlogged(), [key("a")], "the other has no more");
    queue.assign(Partitions::from(row(1, "a").partition.expect("stamped")..=255));
    assert_eq!(refill().floor, 32);
}

/// Taking the rows behind one that has no place would break the order, even if a place is free by then.
#[test]
fn nothing_of_a_key_is_taken_above_what_was_refused() {
    let queue = queue(FailingKey::Wait);
    backlog(&queue, &["a"], 16);
    let refill = queue.refill(4, Instant::now()).expect("it needs a refill");
    let fetch = queue.begin_fetch().number;
    let source = refill_above(0, fetch);
    let rows = (100..=200).map(|seq| row(seq, "a"));
    let refused = push(&queue, rows, source);
    let first = *refused.first().expect("a key does not get all");
    assert_eq!(refused, (first..=200).collect::<Vec<_>>());
    use_up(&queue);
    assert_eq!(push(&queue, [row(201, "a")], source), [201]);
    queue.refilled(&refill.keys, fetch, i64::MAX, i64::MAX);
    assert_eq!(queue.refill(4, Instant::now()).map(|refill| refill.floor), Some(first - 1));
}

#[test]
fn rows_read_for_an_earlier_assignment_are_read_again() {
    let queue = queue(FailingKey::Wait);
    backlog(&queue, &["a"], 16);
    let refill = queue.refill(4, Instant::now()).expect("it needs a refill");
    let fetch = queue.begin_fetch().number;
    let mut fewer = Partitions::ALL;
    fewer.remove(row(1, "a").partition.map_or(0, |of_a| of_a.wrapping_add(1)));
    queue.assign(fewer);
    assert_eq!(push(&queue, [row(100, "a")], refill_above(0, fetch)), [100]);
    queue.refilled(&refill.keys, fetch, 100, 100);
    assert_eq!(queue.refill(4, Instant::now()).map(|refill| refill.floor), Some(0));
}

/// It would be read again and again in vain.
#[test]
fn a_key_that_is_blocked_is_not_read_until_the_table_knows() {
    let queue = queue(FailingKey::Wait);
    let retried = Row { status: Status::Retry, attempts: 1, timed: true, ..row(1, "a") };
    push(&queue, [retried], begin(&queue));
    read(&queue, &(2..=40).map(|seq| (seq, "a")).collect::<Vec<_>>());
    for seq in 1..=16 {
        assert_eq!(running(&queue), [seq]);
        queue.ended(seq, Some(&Change::Done));
    }
    assert_eq!(queue.refill(4, Instant::now()), None);
    assert_eq!(queue.recorded([(1, true)]), Some(1));
    assert!(queue.refill(4, Instant::now()).is_some());
}

#[test]
fn of_too_many_keys_no_more_are_read_until_some_have_caught_up() {
    let queue = queue_of(2 * MAX_BACKLOGGED, MAX_BACKLOGGED, FailingKey::Wait);
    let keys: Vec<String> = (0..MAX_BACKLOGGED).map(|number| number.to_string()).collect();
    let of_each = |seq: i64| keys.iter().map(move |key| row(seq, key));
    push(&queue, of_each(1).chain(of_each(2)), begin(&queue));
    assert_eq!(queue.backlogged().len(), MAX_BACKLOGGED);
    assert_eq!(queue.room(), None);
    use_up(&queue);
    let refill = queue.refill(10, Instant::now()).expect("all need a refill");
    queue.refilled(&refill.keys, queue.begin_fetch().number, i64::MAX, i64::MAX);
    assert!(queue.room().is_some());
}

#[test]
fn rows_of_lost_partitions_are_dropped_and_not_taken() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    let of_a = row(1, "a").partition.expect("stamped");
    let mut rest = Partitions::ALL;
    rest.remove(of_a);
    let under_way = begin(&queue);
    assert_eq!(queue.assign(rest), [2]);
    assert_eq!(queue.assign(Partitions::ALL), [0; 0]);
    assert_eq!(push(&queue, [row(3, "a")], under_way), [3], "what was read before it was given away");
    assert!(read(&queue, &[(2, "a")]).is_empty());
    assert!(running(&queue).is_empty(), "row 1 still runs");
    assert!(!queue.ended(1, Some(&Change::Done)).left);
    assert_eq!(running(&queue), [2]);
}

#[test]
fn calls_told_to_stop_are_recorded_on_success_and_left_to_the_table_on_failure() {
    let queue = queue(FailingKey::Wait);
    let [of_a, of_b] = ["a", "b"].map(|key| row(1, key).partition.expect("stamped"));
    let surplus: Partitions = [of_a, of_b].into_iter().collect();
    read(&queue, &[(1, "a"), (2, "b"), (3, "c")]);
    let items = queue.pop_more(Class::FIRST, 3, |_| true);
    let stop_requested = |item: &Item| item.deliverer.as_ref().expect("of its partition").lost.is_cancelled();
    assert!(!items.iter().any(stop_requested));
    queue.assign(Partitions::ALL.difference(surplus));
    assert_eq!(queue.request_stop(surplus), 2);
    assert_eq!(items.iter().map(stop_requested).collect::<Vec<_>>(), [true, true, false], "nobody else is");
    assert!(!queue.ended(1, Some(&Change::Done)).left, "it was in time");

    // The partitions stay after all, and the second handler fails for having been told.
    queue.assign(Partitions::ALL);
    let under_way = begin(&queue);
    assert!(queue.ended(2, Some(&dead())).left);
    assert_eq!(push(&queue, [row(4, "b")], under_way), [4], "it would overtake what was left");
    queue.recorded([(2, false)]);
    assert_eq!(queue.begin_fetch().freed, Some(2), "from where the table is read again");
    read(&queue, &[(2, "b"), (4, "b")]);
    let again = queue.pop_more(Class::FIRST, 3, |_| true);
    assert_eq!(again.iter().map(|item| (item.row.seq, stop_requested(item))).collect::<Vec<_>>(), [(2, false)]);
    assert!(!queue.ended(3, Some(&dead())).left, "a failure of one that was not told is one");
}

#[test]
fn after_a_crash_the_first_rows_of_the_dead_owner_are_suspected() {
    use PriorAttempt::{Clean, Suspect};
    let of_a = row(1, "a").partition.expect("stamped");
    let table = [
        (Partitions::from(of_a..=of_a), 10, [Suspect, Clean, Clean], "those of its partitions"),
        (Partitions::ALL, 2, [Suspect, Suspect, Clean], "none that was written after the takeover"),
    ];
    for (unclean, highest, expected, which) in table {
        let queue = key_lanes(CAPACITY, 3, FailingKey::Wait);
        queue.suspect(unclean, highest);
        queue.assign(Partitions::ALL);
        read(&queue, &[(1, "a"), (2, "b"), (3, "c")]);
        let items = queue.pop_more(Class::FIRST, 3, |_| true);
        assert_eq!(items.iter().map(|item| item.prior_attempt).collect::<Vec<_>>(), expected, "{which}");
    }
}

#[test]
fn a_key_that_was_to_be_read_again_from_below_is_so_after_its_event_failed() {
    for fails in [true, false] {
        let queue = queue(FailingKey::Wait);
        let hot: Vec<(i64, &str)> = (11..=50).map(|seq| (seq, "hot")).collect();
        read(&queue, &hot);
        assert_eq!((queue.backlogged().len(), running(&queue)), (1, vec![11]));
        // A type whose rows were passed over is read again: there may be some of the key anywhere.
        queue.reread_from(0);
        if fails {
            queue.ended(11, Some(&dead()));
        } else {
            queue.left(11);
        }
        assert_eq!(queue.backlogged(), []);
        assert_eq!(queue.begin_fetch().freed, Some(1), "from the bottom, and not only from what failed");
    }
}

/// While the answer is on its way the row is left out of fetches, so that a replay in between is not seen; and then the key is not blocked
/// any more.
#[test]
fn the_table_is_read_again_from_a_dead_event_that_may_have_been_replayed() {
    for is_replayed in [true, false] {
        let queue = queue(FailingKey::Wait);
        queue.intervened();
        read(&queue, &[(3, "a"), (4, "a")]);
        assert_eq!(running(&queue), [3]);
        assert_eq!(queue.ended(3, Some(&dead())).dropped, [4]);
        assert_eq!(queue.begin_fetch().freed, None);
        if is_replayed {
            queue.intervened();
        }
        queue.recorded([(3, true)]);
        assert_eq!(queue.begin_fetch().freed, is_replayed.then_some(3));
    }
}

/// A try to record it, whose answer was lost, may have been recorded after a fetch saw no failed event, and the next try is refused then.
#[test]
fn a_fetch_asks_for_failed_events_after_a_refused_verdict_on_one() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    queue.ended(1, Some(&dead()));
    let begun = queue.begin_fetch();
    queue.saw_heads(begun.number, false);
    assert!(queue.begin_fetch().heads, "it is to be recorded");
    queue.recorded([(1, false)]);
    assert!(queue.begin_fetch().heads);
}

#[test]
fn a_batch_takes_what_is_wanted_and_leaves_the_rest_in_its_order() {
    let queue = queue(FailingKey::Wait);
    read(&queue, &[(1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "d")]);
    let odd = queue.pop_more(Class::FIRST, usize::MAX, |item| item.row.seq % 2 == 1);
    assert_eq!(odd.iter().map(|item| item.row.seq).collect::<Vec<_>>(), [1, 5], "3 waits for 1");
    assert_eq!(running(&queue), [2, 4]);
    queue.ended(1, Some(&Change::Done));
    assert_eq!(running(&queue), [3]);
}

#[test]
fn rows_left_in_the_table_take_along_those_that_wait_behind_them() {
    let queue = running_of(&[(1, "a"), (2, "a"), (3, "b")], &[1, 3]);
    let under_way = begin(&queue);
    assert_eq!(queue.left(1).dropped, [2]);
    assert_eq!((queue.depth(), running(&queue)), (0, vec![]));
    assert_eq!(push(&queue, [row(4, "a")], under_way), [4], "read before, it would overtake both");
    assert_eq!(read(&queue, &[(4, "a")]), [4], "the registry holds both still, so that this fetch has left them out");
    queue.recorded([(1, false)]);
    let begun = queue.begin_fetch();
    assert_eq!(begun.freed, Some(1), "from there the table is read again");
    assert!(push(&queue, [1, 2, 4].map(|seq| row(seq, "a")), source(begun.number)).is_empty());
    assert_eq!(running(&queue), [1]);
}

#[test]
fn a_key_waits_until_all_is_recorded_that_it_has_to_wait_for() {
    let queue = running_of(&[(1, "a"), (2, "a"), (4, "a")], &[1]);
    assert_eq!(queue.failed(&key("a"), 3, &dead()), Some(vec![4]), "a row that is no event");
    assert_eq!(queue.left(1).dropped, [2]);
    assert_eq!(read(&queue, &[(4, "a")]), [4], "a fetch of now may not know that 3 is DEAD");
    queue.recorded([(3, true), (1, false)]);
    assert!(read(&queue, &[(4, "a")]).is_empty());
}

#[test]
fn of_two_failures_the_first_to_be_recorded_frees_nothing() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    assert_eq!(queue.failed(&key("a"), 3, &dead()), Some(vec![]));
    assert_eq!(queue.ended(1, Some(&dead())).dropped, [2]);
    queue.recorded([(3, true)]);
    assert_eq!(read(&queue, &[(2, "a")]), [2], "that 1 has failed is not in the table yet");
    queue.recorded([(1, true)]);
    assert!(read(&queue, &[(2, "a")]).is_empty());
}

#[test]
fn rows_between_two_verdicts_are_read_again_once_both_are_recorded() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    assert_eq!(queue.failed(&key("a"), 5, &dead()), Some(vec![]));
    assert_eq!(queue.left(1).dropped, [2]);
    queue.recorded([(1, false)]);
    assert_eq!(queue.begin_fetch().freed, Some(1));
    assert_eq!(read(&queue, &[(1, "a"), (2, "a")]), [2], "the verdict on 5 is not recorded yet");
    queue.recorded([(5, true)]);
    assert_eq!(queue.begin_fetch().freed, Some(1), "2 has been passed over, and waits for nothing");
}

/// A row is released in the register a moment before its queue knows that the verdict is recorded, so another thread may read it in between.
#[test]
fn an_event_that_is_read_before_it_is_known_to_be_recorded_is_taken_afterwards() {
    let retry = Change::Retry { attempts: 1, delay: Duration::ZERO, error: None };
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    queue.ended(1, Some(&retry));
    assert_eq!(read(&queue, &[(1, "a")]), [1], "not known yet");
    assert!(running(&queue).is_empty());
    assert_eq!(queue.recorded([(1, true)]), Some(1));
    assert_eq!(queue.begin_fetch().freed, Some(1));
    assert!(read(&queue, &[(1, "a")]).is_empty());
    assert_eq!(running(&queue), [1]);
    queue.ended(1, Some(&Change::Done));
    queue.recorded([(1, true)]);
    assert!(read(&queue, &[(2, "a")]).is_empty(), "nothing keeps the key waiting any more");
    assert_eq!(running(&queue), [2]);
}

/// Its second verdict would block the key under the first one's name, and the first to be recorded would free it.
#[test]
fn a_row_that_is_no_event_and_is_read_before_its_verdict_is_known_to_be_recorded_is_read_again() {
    let queue = queue(FailingKey::Wait);
    assert_eq!(queue.failed(&key("a"), 5, &dead()), Some(vec![]));
    assert_eq!(queue.failed(&key("a"), 5, &dead()), None, "not known yet");
    assert_eq!(read(&queue, &[(6, "a")]), [6]);
    assert_eq!(queue.recorded([(5, true)]), Some(5));
    assert_eq!(queue.begin_fetch().freed, Some(5));
    assert_eq!(queue.failed(&key("a"), 5, &dead()), Some(vec![]));
    queue.recorded([(5, true)]);
    assert!(read(&queue, &[(6, "a")]).is_empty(), "nothing keeps the key waiting any more");
}

/// The waiting events were dropped for the sake of a pause, and their key was forgotten, but not that it was ready.
#[test]
fn a_key_that_comes_back_is_ready_once() {
    let queue = running_of(&[(1, "a"), (2, "a")], &[1]);
    let fetch = begin(&queue);
    queue.ended(1, Some(&Change::Retry { attempts: 1, delay: Duration::ZERO, error: None }));
    queue.recorded([(1, true)]);
    assert!(push(&queue, [row(1, "a")], fetch).is_empty(), "it is due again");
    assert_eq!(queue.drop_waiting(), [1]);
    assert!(read(&queue, &[(1, "a"), (2, "a")]).is_empty());
    assert_eq!(running(&queue), [1], "the second waits for the first");
}
