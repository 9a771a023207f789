//! Destinations that are asked before events are passed on, and those that no event tries out.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::event::Envelope;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Forwarder, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(2);

/// Routes `well` and `ill`, each to the target `there` of a publisher of its own.
fn forwarder(well: &MemoryPublisher, ill: &MemoryPublisher) -> Forwarder {
    let to =
        |publisher: &MemoryPublisher, name| Route::to(Arc::new(publisher.clone()), "there").named(name).types([name]);
    Routes::new().route(to(well, "well")).route(to(ill, "ill")).build().expect("valid")
}

fn states(forwarder: &Forwarder) -> [RouteState; 2] {
    let states: Vec<RouteState> = forwarder.status().into_iter().map(|status| status.state).collect();
    states.try_into().expect("two routes")
}

fn problem(way: &RouteState) -> &str {
    let RouteState::Paused { problem, .. } = way else { panic!("it delivers") };
    problem
}

/// Waits until the second route is as it should be.
async fn until(forwarder: &Forwarder, is_so: impl Fn(&RouteState) -> bool) {
    let changed = async {
        while !is_so(&states(forwarder)[1]) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let both = async {
        tokio::select! {
            () = changed => {}
            () = forwarder.watch() => panic!("it ends"),
        }
    };
    timeout(Duration::from_secs(300), both).await.unwrap_or_else(|_| panic!("{:?}", forwarder.status()));
}

#[tokio::test(start_paused = true)]
async fn routes_without_an_answer_in_time_begin_paused_and_hold_up_nobody() {
    let (well, silent) = (MemoryPublisher::new(), MemoryPublisher::new());
    silent.answer(Answer::Silence);
    let forwarder = forwarder(&well, &silent);
    let began = Instant::now();
    forwarder.begin(PATIENCE).await.expect("nobody refuses anything");
    assert_eq!(began.elapsed(), PATIENCE);
    let [delivering, paused] = states(&forwarder);
    assert_eq!((delivering, problem(&paused)), (RouteState::Delivering, "it has not answered within 2s"));
}

#[tokio::test(start_paused = true)]
async fn brokers_that_answer_in_time_are_waited_for_no_longer() {
    let (well, ill) = (MemoryPublisher::new(), MemoryPublisher::new());
    let forwarder = forwarder(&well, &ill);
    let began = Instant::now();
    ill.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    let comes_back = async {
        sleep(Duration::from_secs(1)).await;
        ill.answer(Answer::Confirm);
    };
    let (begun, ()) = tokio::join!(forwarder.begin(PATIENCE), comes_back);
    begun.expect("it is there");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(states(&forwarder), [RouteState::Delivering, RouteState::Delivering]);
}

#[tokio::test(start_paused = true)]
async fn brokers_that_refuse_in_time_are_errors() {
    let (silent, wrong) = (MemoryPublisher::new(), MemoryPublisher::new());
    silent.answer(Answer::Silence);
    wrong.only_targets(["elsewhere"]);
    let errors = forwarder(&silent, &wrong).begin(PATIENCE).await.expect_err("a target is missing");
    let [error] = &errors[..] else { panic!("one refuses: {errors:?}") };
    let text = error.to_string();
    assert!(text.contains("memory at memory:, which `ill` send to: there is no target `there`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn without_an_event_a_paused_route_is_tried_out_by_a_check() {
    let (well, ill) = (MemoryPublisher::new(), MemoryPublisher::new());
    ill.answer(Answer::Silence);
    let forwarder = forwarder(&well, &ill);
    forwarder.begin(PATIENCE).await.expect("nobody refuses anything");
    let is_over = |way: &RouteState| matches!(way, RouteState::Paused { next_probe: None, .. });
    until(&forwarder, is_over).await;
    let status = serde_json::to_value(&forwarder.status()[1]).expect("JSON");
    assert_eq!((&status["state"], &status["next_probe_ms"]), (&"probing".into(), &serde_json::Value::Null), "{status}");
    assert_eq!(status["problem"], "it has not answered within 2s");

    ill.answer(Answer::Confirm);
    ill.only_targets(["elsewhere"]);
    until(&forwarder, |way| problem(way) == "there is no target `there`; make it").await;
    until(&forwarder, is_over).await;
    ill.only_targets(["there"]);
    until(&forwarder, |way| *way == RouteState::Delivering).await;
    assert!(ill.calls().is_empty(), "nothing was sent");

    // An answer is no proof: the pauses go on where they were.
    ill.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    let store = MemoryStore::new();
    let mut tx = store.begin();
    insert(&store, &mut tx, vec![Envelope::json("ill", "{}").expect("valid")]).await.expect("inserts");
    tx.commit();
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox =
        Outbox::single_node(store).type_pause(forwarder.type_pause()).handler(handler).start().await.expect("starts");
    let longer = |pause: Option<Duration>| pause.is_some_and(|pause| pause > Duration::from_secs(1));
    until(&forwarder, |way| matches!(way, RouteState::Paused { next_probe, .. } if longer(*next_probe))).await;
    assert_eq!(ill.calls().len(), 1, "after the first call already");
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_makes_no_message_says_nothing_of_the_destination() {
    let ill = MemoryPublisher::new();
    ill.answer(Answer::Silence);
    let route = Route::to(Arc::new(ill.clone()), "there.{tenant_id}").named("ill").types(["ill"]);
    let forwarder = Routes::new().route(route).build().expect("valid");
    forwarder.begin(PATIENCE).await.expect("nobody refuses anything");
    let store = MemoryStore::new();
    let mut tx = store.begin();
    insert(&store, &mut tx, vec![Envelope::json("ill", "{}").expect("valid")]).await.expect("inserts");
    tx.commit();
    let outbox = Outbox::single_node(store)
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 9, forwarder.clone()).for_any_name());
    let outbox = outbox.start().await.expect("starts");
    let given_up = async {
        while outbox.stats().dead == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(300), given_up).await.expect("it has no tenant");
    assert_eq!(problem(&forwarder.status()[0].state), "it has not answered within 2s", "nobody has asked since");
    outbox.shutdown().await;
}

/// A publisher of many servers, as one of webhooks is: without a target it asks none of them.
#[derive(Debug)]
struct ManyServers {
    info: PublisherInfo,
    is_there: AtomicBool,
}

impl ManyServers {
    fn answer(&self) -> Result<(), PublishError> {
        if self.is_there.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(PublishError::unavailable("connection refused"))
        }
    }
}

#[async_trait]
impl Publisher for ManyServers {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        if targets.is_empty() { Ok(()) } else { self.answer() }
    }

    async fn check_prefix(&self, _: &str) -> Result<bool, PublishError> {
        self.answer().map(|()| true)
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        messages.iter().map(|_| self.answer().map(|()| None)).collect()
    }

    async fn close(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_target_that_depends_on_the_event_is_asked_for_by_its_beginning() {
    let servers = ManyServers { info: PublisherInfo::new("memory", "memory:"), is_there: AtomicBool::new(false) };
    let servers = Arc::new(servers);
    let well = Route::to(Arc::new(MemoryPublisher::new()), "there").named("well").types(["well"]);
    let route = Route::to(Arc::clone(&servers) as Arc<dyn Publisher>, "/x/{event_type}").named("hook");
    let forwarder = Routes::new().route(well).route(route).build().expect("valid");
    let store = MemoryStore::new();
    let mut tx = store.begin();
    insert(&store, &mut tx, vec![Envelope::json("placed", "{}").expect("valid")]).await.expect("inserts");
    tx.commit();
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store).handler(handler).start().await.expect("starts");
    until(&forwarder, |way| matches!(way, RouteState::Paused { .. })).await;
    outbox.shutdown().await;

    let opens = until(&forwarder, |way| *way == RouteState::Delivering);
    assert!(timeout(Duration::from_secs(200), opens).await.is_err(), "nobody answers: {:?}", forwarder.status());
    servers.is_there.store(true, Ordering::Relaxed);
    until(&forwarder, |way| *way == RouteState::Delivering).await;
}
