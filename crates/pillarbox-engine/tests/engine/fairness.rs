//! A handler that never answers takes its share of workers and memory, and the others go on, in every mode that has no one order.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch, on_type};
use pillarbox_engine::run::{Outbox, TypePause};
use pillarbox_memory::MemoryStore;
use tokio::sync::Notify;
use tokio::time::Instant;

/// More than all that the defaults hold.
const EVENTS: usize = 8000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    SingleNode,
    MultiNode,
    Partitioned,
}

const MODES: [Mode; 3] = [Mode::SingleNode, Mode::MultiNode, Mode::Partitioned];

/// What was delivered, by key and in its order.
#[derive(Debug, Default)]
struct Delivered {
    by_key: Mutex<BTreeMap<String, Vec<(String, u32)>>>,
    more: Notify,
}

impl Delivered {
    fn add(&self, delivery: &Delivery) {
        let event = (delivery.event_type().to_owned(), delivery.parse().expect("a number"));
        let key = delivery.key().unwrap_or_default().to_owned();
        self.by_key.lock().expect("not poisoned").entry(key).or_default().push(event);
        self.more.notify_one();
    }

    fn count(&self) -> usize {
        self.by_key.lock().expect("not poisoned").values().map(Vec::len).sum()
    }

    /// Waits for so many; fails after a virtual time that is short beside any time limit.
    async fn wait_for(&self, count: usize, patience: Duration) {
        let all = async {
            while self.count() < count {
                self.more.notified().await;
            }
        };
        let began = Instant::now();
        if tokio::time::timeout(patience, all).await.is_err() {
            panic!("{} of {count} were delivered within {:?}", self.count(), began.elapsed());
        }
    }

    /// Each event once, and those of a key in their order.
    fn assert_in_order(&self, count: usize, in_order: bool) {
        let by_key = self.by_key.lock().expect("not poisoned");
        let numbers: HashMap<u32, usize> = by_key.values().flatten().fold(HashMap::new(), |mut calls, (_, number)| {
            *calls.entry(*number).or_default() += 1;
            calls
        });
        assert_eq!((numbers.len(), numbers.values().max()), (count, Some(&1)), "each once");
        if in_order {
            for (key, events) in by_key.iter() {
                assert!(events.is_sorted_by_key(|(_, number)| *number), "key {key}: {events:?}");
            }
        }
    }
}

/// Writes events of these types and keys in turns, their place as their payload.
async fn write(store: &MemoryStore, events: usize, of: impl Fn(usize) -> (&'static str, String)) {
    let event = |number: usize| {
        let (event_type, key) = of(number);
        Envelope::builder(event_type).key(key).payload_json(number.to_string()).build().expect("valid")
    };
    for from in (0..events).step_by(1000) {
        let mut tx = store.begin();
        insert(store, &mut tx, (from..from + 1000).map(event).collect::<Vec<_>>()).await.expect("inserts");
        tx.commit();
    }
}

/// Runs an outbox with a handler for `silent`, which is never answered until it is `freed`, and one for `quick`.
async fn outbox(
    mode: Mode,
    store: &MemoryStore,
    delivered: &Arc<Delivered>,
    freed: &Arc<tokio::sync::Semaphore>,
) -> Outbox {
    let silent = {
        let (delivered, freed) = (Arc::clone(delivered), Arc::clone(freed));
        on_type("silent", move |delivery: Delivery| {
            let (delivered, freed) = (Arc::clone(&delivered), Arc::clone(&freed));
            async move {
                drop(freed.acquire().await);
                delivered.add(&delivery);
            }
        })
    };
    let quick = {
        let delivered = Arc::clone(delivered);
        on_type("quick", move |delivery: Delivery| {
            delivered.add(&delivery);
            std::future::ready(())
        })
    };
    let (store, started) = (store.clone(), "starts");
    match mode {
        Mode::SingleNode => Outbox::single_node(store).handler(silent).handler(quick).start().await.expect(started),
        Mode::MultiNode => Outbox::multi_node(store).handler(silent).handler(quick).start().await.expect(started),
        Mode::Partitioned => Outbox::partitioned(store).handler(silent).handler(quick).start().await.expect(started),
    }
}

/// However the events stand in the table, by many keys or by few, those of the other handler are all delivered at once, and, once it
/// answers, those of the first, each once and those of a key in their order.
#[tokio::test(start_paused = true)]
async fn a_handler_that_never_answers_does_not_stop_the_others() {
    for mode in MODES {
        for keys in [EVENTS, 20] {
            for in_turns in [true, false] {
                let store = MemoryStore::new();
                let of = |number: usize| {
                    let is_quick = if in_turns { number % 2 == 1 } else { number >= EVENTS };
                    let event_type = if is_quick { "quick" } else { "silent" };
                    (event_type, format!("{event_type}-{}", number / 2 % keys))
                };
                write(&store, 2 * EVENTS, of).await;
                let (delivered, freed) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
                let outbox = outbox(mode, &store, &delivered, &freed).await;
                delivered.wait_for(EVENTS, Duration::from_secs(2)).await;
                write(&store, 1000, |_| ("quick", "late".to_owned())).await;
                delivered.wait_for(EVENTS + 1000, Duration::from_secs(6)).await;
                freed.close();
                delivered.wait_for(2 * EVENTS + 1000, Duration::from_secs(60)).await;
                outbox.shutdown().await;
                delivered.by_key.lock().expect("not poisoned").remove("late");
                delivered.assert_in_order(2 * EVENTS, mode == Mode::Partitioned);
            }
        }
    }
}

/// While a transaction that has written an event stays open, nothing above that event is proven to be complete, so that the table is
/// read from there each time. What waits there for the handler that does not answer is passed over nevertheless.
#[tokio::test(start_paused = true)]
async fn an_open_transaction_and_a_handler_that_never_answers_do_not_stop_the_others() {
    for keys in [EVENTS, 20] {
        let store = MemoryStore::new();
        let mut open = store.begin();
        let event = Envelope::builder("quick").key("open").payload_json("100000").build().expect("valid");
        insert(&store, &mut open, vec![event]).await.expect("inserts");
        write(&store, 2 * EVENTS, |number| {
            let event_type = if number % 2 == 1 { "quick" } else { "silent" };
            (event_type, format!("{event_type}-{}", number / 2 % keys))
        })
        .await;
        let (delivered, freed) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
        let outbox = outbox(Mode::Partitioned, &store, &delivered, &freed).await;
        delivered.wait_for(EVENTS, Duration::from_secs(2)).await;
        write(&store, 1000, |_| ("quick", "late".to_owned())).await;
        delivered.wait_for(EVENTS + 1000, Duration::from_secs(6)).await;
        open.commit();
        delivered.wait_for(EVENTS + 1001, Duration::from_secs(6)).await;
        freed.close();
        delivered.wait_for(2 * EVENTS + 1001, Duration::from_secs(60)).await;
        outbox.shutdown().await;
        delivered.by_key.lock().expect("not poisoned").remove("late");
        delivered.assert_in_order(2 * EVENTS + 1, true);
    }
}

/// Three handlers that do not answer, each with more events than all that the defaults hold, leave a worker for the fourth.
#[tokio::test(start_paused = true)]
async fn three_handlers_that_never_answer_do_not_stop_a_fourth() {
    const SILENT: [&str; 3] = ["silent-1", "silent-2", "silent-3"];
    for (mode, in_turns) in [(Mode::SingleNode, false), (Mode::MultiNode, true), (Mode::Partitioned, true)] {
        let store = MemoryStore::new();
        let of = |number: usize| {
            let turn = if in_turns { number % 4 } else { number / EVENTS };
            let event_type = SILENT.get(turn).copied().unwrap_or("quick");
            (event_type, format!("{event_type}-{}", number / 4 % 1000))
        };
        write(&store, 4 * EVENTS, of).await;
        let (delivered, freed) = (Arc::<Delivered>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
        let silent = |event_type| {
            let (delivered, freed) = (Arc::clone(&delivered), Arc::clone(&freed));
            on_type(event_type, move |delivery: Delivery| {
                let (delivered, freed) = (Arc::clone(&delivered), Arc::clone(&freed));
                async move {
                    drop(freed.acquire().await);
                    delivered.add(&delivery);
                }
            })
        };
        let quick = {
            let delivered = Arc::clone(&delivered);
            on_type("quick", move |delivery: Delivery| {
                delivered.add(&delivery);
                std::future::ready(())
            })
        };
        let [first, second, third] = SILENT.map(silent);
        let store = store.clone();
        macro_rules! start {
            ($outbox:expr) => {
                $outbox.handler(first).handler(second).handler(third).handler(quick).start().await
            };
        }
        let outbox = match mode {
            Mode::SingleNode => start!(Outbox::single_node(store)),
            Mode::MultiNode => start!(Outbox::multi_node(store)),
            Mode::Partitioned => start!(Outbox::partitioned(store)),
        };
        let outbox = outbox.expect("starts");
        delivered.wait_for(EVENTS, Duration::from_secs(4)).await;
        freed.close();
        delivered.wait_for(4 * EVENTS, Duration::from_secs(60)).await;
        outbox.shutdown().await;
        delivered.assert_in_order(4 * EVENTS, mode == Mode::Partitioned);
    }
}

/// What stands behind an event of the first handler in its key waits for it, and nothing else does.
#[tokio::test(start_paused = true)]
async fn events_of_other_keys_go_on_where_handlers_share_keys() {
    for shared_keys in [10, EVENTS / 4] {
        let store = MemoryStore::new();
        // In turns: two events for either handler of a shared key, and two for the quick one of a key of its own.
        let of = |number: usize| match number % 4 {
            0 => ("silent", format!("shared-{}", number / 4 % shared_keys)),
            1 => ("quick", format!("shared-{}", number / 4 % shared_keys)),
            _ => ("quick", format!("own-{}", number / 4 % 1000)),
        };
        write(&store, 2 * EVENTS, of).await;
        let (delivered, freed) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
        let outbox = outbox(Mode::Partitioned, &store, &delivered, &freed).await;
        delivered.wait_for(EVENTS, Duration::from_secs(2)).await;
        assert_eq!(delivered.count(), EVENTS, "those that share a key with it wait");
        freed.close();
        delivered.wait_for(2 * EVENTS, Duration::from_secs(60)).await;
        outbox.shutdown().await;
        delivered.assert_in_order(2 * EVENTS, true);
    }
}

/// Events of keys that two handlers share, neither of which answers, come in their order, also where nothing is proven to be complete: a key
/// waits now for the one handler and now for the other, while its events stand in the table.
#[tokio::test(start_paused = true)]
async fn keys_that_wait_for_two_handlers_keep_their_order() {
    const OTHER: [&str; 3] = ["first", "second", "second"];
    for shared_keys in [50, EVENTS / 8] {
        let store = MemoryStore::new();
        let mut open = store.begin();
        let event = Envelope::builder("quick").key("open").payload_json("100000").build().expect("valid");
        insert(&store, &mut open, vec![event]).await.expect("inserts");
        write(&store, 2 * EVENTS, |number| match OTHER.get(number % 4) {
            Some(event_type) => (*event_type, format!("shared-{}", number / 4 % shared_keys)),
            None => ("quick", format!("own-{}", number / 4 % 1000)),
        })
        .await;
        let delivered = Arc::<Delivered>::default();
        let gates: [Arc<tokio::sync::Semaphore>; 2] = std::array::from_fn(|_| Arc::new(tokio::sync::Semaphore::new(0)));
        let gated = |event_type, type_pause: &Arc<tokio::sync::Semaphore>| {
            let (delivered, type_pause) = (Arc::clone(&delivered), Arc::clone(type_pause));
            on_type(event_type, move |delivery: Delivery| {
                let (delivered, type_pause) = (Arc::clone(&delivered), Arc::clone(&type_pause));
                async move {
                    if let Ok(permit) = type_pause.acquire().await {
                        permit.forget();
                    }
                    delivered.add(&delivery);
                }
            })
        };
        let quick = {
            let delivered = Arc::clone(&delivered);
            on_type("quick", move |delivery: Delivery| {
                delivered.add(&delivery);
                std::future::ready(())
            })
        };
        let outbox = Outbox::partitioned(store.clone())
            .handler(gated("first", &gates[0]))
            .handler(gated("second", &gates[1]))
            .handler(quick);
        let outbox = outbox.start().await.expect("starts");
        delivered.wait_for(EVENTS / 2, Duration::from_secs(4)).await;
        // A few of either get through in turns, so that places in memory change hands.
        for _ in 0..20 {
            gates[0].add_permits(13);
            tokio::time::sleep(Duration::from_millis(70)).await;
            gates[1].add_permits(29);
            tokio::time::sleep(Duration::from_millis(70)).await;
        }
        open.commit();
        gates[0].close();
        gates[1].close();
        delivered.wait_for(2 * EVENTS + 1, Duration::from_secs(120)).await;
        outbox.shutdown().await;
        delivered.assert_in_order(2 * EVENTS + 1, true);
    }
}

/// A batch handler with lanes that only the payload tells apart; lane 0 never answers.
#[derive(Debug)]
struct Lanes(Arc<Delivered>, Arc<tokio::sync::Semaphore>);

impl Lanes {
    fn of(delivery: &Delivery) -> u64 {
        u64::from(delivery.parse::<u32>().expect("a number") % 3)
    }
}

impl BatchHandler for Lanes {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        Box::pin(async move {
            if deliveries.iter().map(Self::of).any(|lane| lane == 0) {
                drop(self.1.acquire().await);
            }
            deliveries.iter().for_each(|delivery| self.0.add(delivery));
            deliveries.iter().map(|_| Ok(Outcome::Done)).collect()
        })
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        Self::of(delivery)
    }

    fn lanes(&self) -> usize {
        3
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_never_answers_does_not_stop_the_others_even_if_no_type_tells_them_apart() {
    for mode in MODES {
        let store = MemoryStore::new();
        write(&store, 24_000, |number| ("t", format!("{}-{}", number % 3, number % 5000))).await;
        let (delivered, freed) = (Arc::<Delivered>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
        let handler = on_batch(Events::Others, 100, Lanes(Arc::clone(&delivered), Arc::clone(&freed))).for_any_name();
        let store = store.clone();
        let outbox = match mode {
            Mode::SingleNode => Outbox::single_node(store).handler(handler).start().await,
            Mode::MultiNode => Outbox::multi_node(store).handler(handler).start().await,
            Mode::Partitioned => Outbox::partitioned(store).handler(handler).start().await,
        };
        let outbox = outbox.expect("starts");
        delivered.wait_for(16_000, Duration::from_secs(3)).await;
        freed.close();
        delivered.wait_for(24_000, Duration::from_secs(60)).await;
        outbox.shutdown().await;
        delivered.assert_in_order(24_000, mode == Mode::Partitioned);
    }
}

/// A handler that was passed over gives events back to the table and takes them again before the table was read: the events of a key come
/// in their order nevertheless.
#[tokio::test(start_paused = true)]
async fn events_that_a_silent_handler_gives_back_keep_their_order() {
    const KEYS: usize = 20;
    const GIVEN_BACK: usize = 3;
    let store = MemoryStore::new();
    write(&store, 2 * EVENTS, |number| {
        let event_type = if number % 2 == 1 { "quick" } else { "silent" };
        (event_type, format!("{event_type}-{}", number / 2 % KEYS))
    })
    .await;
    let (delivered, type_pause, calls): (Arc<Delivered>, TypePause, Arc<AtomicUsize>) = Default::default();
    let freed = Arc::new(tokio::sync::Semaphore::new(0));
    let silent = {
        let (delivered, type_pause, freed) = (Arc::clone(&delivered), type_pause.clone(), Arc::clone(&freed));
        on_type("silent", move |delivery: Delivery| {
            let (delivered, type_pause, freed) = (Arc::clone(&delivered), type_pause.clone(), Arc::clone(&freed));
            let calls = Arc::clone(&calls);
            async move {
                drop(freed.acquire().await);
                let number = calls.fetch_add(1, Ordering::Relaxed);
                if number < GIVEN_BACK {
                    type_pause.pause("silent", Instant::now() + Duration::from_secs(600));
                    return Err(HandlerError::deferred(Duration::from_secs(600), "away"));
                }
                type_pause.resume(["silent"]);
                delivered.add(&delivery);
                Ok(())
            }
        })
    };
    let quick = {
        let delivered = Arc::clone(&delivered);
        on_type("quick", move |delivery: Delivery| {
            delivered.add(&delivery);
            std::future::ready(())
        })
    };
    let outbox =
        Outbox::partitioned(store).type_pause(type_pause).handler(silent).handler(quick).start().await.expect("starts");
    delivered.wait_for(EVENTS, Duration::from_secs(2)).await;
    freed.close();
    delivered.wait_for(2 * EVENTS, Duration::from_secs(120)).await;
    outbox.shutdown().await;
    delivered.assert_in_order(2 * EVENTS, true);
}
