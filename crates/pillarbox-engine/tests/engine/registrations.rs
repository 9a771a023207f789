//! Handlers that contradict each other, or cannot be, are refused when the outbox starts.

use std::time::Duration;

use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::codecs::Json;
use pillarbox_core::event::{Envelope, Event};
use pillarbox_core::handle::{Delivery, EventKind, Failure, Outcome};
use pillarbox_core::retry::Retry;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_engine::handlers::{Events, Rate, Unroutable, on_batch, on_type};
use pillarbox_engine::run::{Config, FailingHead, FailingKey, Mode, Outbox, Role, SingleNode, StartError};
use pillarbox_memory::MemoryStore;

async fn handler(_: Delivery) {}

async fn failing(_: Delivery) -> Result<(), &'static str> {
    Err("no mail")
}

/// What keeps an outbox from starting; empty if nothing does.
async fn refused(register: impl FnOnce(SingleNode) -> SingleNode) -> String {
    match register(Outbox::single_node(MemoryStore::new())).start().await {
        Ok(outbox) => {
            outbox.shutdown().await;
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn an_event_has_one_handler_or_several_with_names() {
    let several = refused(|outbox| {
        let outbox = outbox
            .handler(on_type("placed", handler).named("mailer"))
            .handler(on_type("placed", handler).named("ledger"));
        outbox
            .handle_type(("order", "placed"), handler)
            .handler(on_type("sent", handler).named("mailer"))
            .handle_all(handler)
    });
    assert_eq!(several.await, "", "a name belongs to the handlers of one route");
    let twice = refused(|outbox| outbox.handle_type("placed", handler).handle_type("placed", handler)).await;
    assert!(twice.contains("`placed`") && twice.contains("give each a name"), "{twice}");
    let mixed =
        refused(|outbox| outbox.handle_type("placed", handler).handler(on_type("placed", handler).named("mailer")));
    let mixed = mixed.await;
    assert!(mixed.contains("`placed`") && mixed.contains("name both"), "{mixed}");
    let same = refused(|outbox| {
        outbox.handler(on_type("placed", handler).named("mailer")).handler(on_type("placed", handler).named("mailer"))
    });
    let same = same.await;
    assert!(same.contains("`placed`") && same.contains("`mailer`"), "{same}");
    let catch_all = refused(|outbox| outbox.handle_all(handler).handle_all(handler)).await;
    assert!(catch_all.contains("all events"), "{catch_all}");
    let writer = Outbox::writer_only(MemoryStore::new()).handled_by("placed", ["mailer", "mailer"]).start().await;
    assert!(writer.is_err_and(|error| error.to_string().contains("`mailer`")));
}

#[tokio::test]
async fn a_named_handler_gets_the_events_that_it_accepts_in_every_mode() {
    let handlers = || {
        let partner = on_type("placed", handler).named("partner").accepts(|event| event.tenant_id() == Some("partner"));
        [on_type("placed", handler).named("ledger"), partner]
    };
    let single = |store| handlers().into_iter().fold(Outbox::single_node(store), |outbox, one| outbox.handler(one));
    let writer = |store| handlers().into_iter().fold(Outbox::writer_only(store), |outbox, one| outbox.handler(one));
    for case in ["delivering", "switched off", "writer_only"] {
        let store = MemoryStore::new();
        let outbox = match case {
            "delivering" => single(store.clone()).start().await,
            "switched off" => single(store.clone()).enabled(false).start().await,
            _ => writer(store.clone()).start().await,
        };
        let outbox = outbox.expect("starts");
        let mut tx = outbox.begin(&store).await.expect("begins");
        for tenant in ["partner", "somebody else"] {
            let event = Envelope::builder("placed").tenant_id(tenant).payload_json("{}").build().expect("valid");
            let written = outbox.write(&mut tx, event).await.expect("writes");
            assert_eq!(written.len(), 1, "{case}: an event counts once");
        }
        tx.commit().await.expect("commits");
        outbox.shutdown().await;
        let counts = store.counts().await.expect("counts");
        assert_eq!(counts.new + counts.done, 3, "{case}: two rows for the ledger, one for the partner");
    }
}

/// A row for a handler is a mistake where that is missing, except for who passes on whatever there is.
#[tokio::test]
async fn rows_for_handlers_that_are_not_there_are_passed_on_by_who_takes_any() {
    for (registration, dead) in
        [(on_type(Events::Others, handler), 1), (on_type(Events::Others, handler).for_any_name(), 0)]
    {
        let store = MemoryStore::new();
        for id in ["named", "unnamed"] {
            store.inspect().insert_three_columns(id, "placed", "{}").expect("inserts");
        }
        assert!(store.inspect().set_handler(1, "mailer"));
        let outbox = Outbox::single_node(store.reopen()).handler(registration).unroutable(Unroutable::Dead);
        let outbox = outbox.start().await.expect("starts");
        while store.counts().await.expect("counts").pending() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        outbox.shutdown().await;
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.dead, counts.done), (dead, 2 - dead));
    }
}

#[tokio::test]
async fn an_event_that_its_handler_does_not_accept_is_not_written() {
    let store = MemoryStore::new();
    let accepts = |event: &Envelope| event.tenant_id() == Some("partner");
    let outbox = Outbox::writer_only(store.clone()).handlers([
        on_type("placed", handler).accepts(accepts),
        on_type("paid", handler),
        on_type(Events::Others, handler).accepts(accepts),
    ]);
    let outbox = outbox.start().await.expect("starts");
    let mut tx = outbox.begin(&store).await.expect("begins");
    for (event_type, tenant, rows) in [
        ("placed", "partner", 1),
        ("placed", "somebody else", 0),
        ("paid", "somebody else", 1),
        ("sent", "partner", 1),
        ("sent", "somebody else", 0),
    ] {
        let event = Envelope::builder(event_type).tenant_id(tenant).payload_json("{}").build().expect("valid");
        let written = outbox.write(&mut tx, event).await.expect("writes");
        assert_eq!((written.len(), written.id().is_some()), (rows, rows > 0), "{event_type} of {tenant}");
    }
    tx.commit().await.expect("commits");
    assert_eq!(store.counts().await.expect("counts").new, 3);
    outbox.shutdown().await;
}

/// An event without a derived implementation, which the facade's tests have.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Placed {
    cents: u32,
}

impl Event for Placed {
    type Codec = Json;
    const TYPE: &'static str = "placed";
}

#[tokio::test]
async fn a_condition_looks_at_the_typed_event() {
    let dear = |placed: &Placed, envelope: &Envelope| placed.cents >= 100 && envelope.tenant_id().is_none();
    let store = MemoryStore::new();
    let partner = || on_type("placed", handler).accepts_event(dear);
    let outbox = Outbox::writer_only(store.clone()).handler(partner()).start().await.expect("starts");
    let mut tx = outbox.begin(&store).await.expect("begins");
    for (event, rows) in [
        (Placed { cents: 99 }.to_builder().build(), 0),
        (Placed { cents: 100 }.to_builder().build(), 1),
        (Placed { cents: 100 }.to_builder().tenant_id("acme").build(), 0),
        // Its handler will say what is wrong of it.
        (Envelope::json("placed", "[]"), 1),
    ] {
        assert_eq!(outbox.write(&mut tx, event.expect("valid")).await.expect("writes").len(), rows);
    }
    tx.commit().await.expect("commits");
    outbox.shutdown().await;
    let other = on_type("paid", handler).accepts_event(dear);
    let problem = refused(|outbox| outbox.handler(other)).await;
    assert!(problem.contains("handler.accepts_event") && problem.contains("`placed`"), "{problem}");
}

#[tokio::test]
async fn invalid_registrations_are_named() {
    let longest = "é".repeat(128);
    assert_eq!(refused(|outbox| outbox.handler(on_type("placed", handler).named(&*longest))).await, "");
    let table = [
        ("handler", on_type("placed", handler).named("")),
        ("handler", on_type("placed", handler).named("x".repeat(129))),
        ("handler", on_type("placed", handler).named("a\0b")),
        ("handler", on_type(Events::Others, handler).named("mailer")),
        ("for_any_name", on_type("placed", handler).for_any_name()),
        ("on_batch.max", on_batch("placed", 0, async |_: Vec<Delivery>| Vec::<()>::new())),
        ("retry.base", on_type("placed", handler).retry(Retry::fixed(Duration::ZERO))),
        ("retry.max_attempts", on_type("placed", handler).retry(Retry::new().max_attempts(0))),
    ];
    for (field, registration) in table {
        let error = refused(|outbox| outbox.handler(registration)).await;
        assert!(error.starts_with(&format!("setting `{field}` ")), "{field}: {error}");
    }
    let error = refused(|outbox| outbox.handle_all(handler).retry(Retry::exponential(Duration::ZERO, Duration::ZERO)));
    assert!(error.await.starts_with("setting `retry.cap` is zero"));
}

#[tokio::test]
async fn a_bad_setting_says_of_which_handler() {
    let order = ("order", "placed");
    let zero = || Retry::fixed(Duration::ZERO);
    let table = [
        (
            on_type(order, handler).named("mailer").concurrency(0),
            "setting `handler.concurrency` of the handler `mailer` of event type `placed` of aggregate type `order` is zero; set at least 1",
        ),
        (
            on_type(order, handler).rate(Rate::per_second(0)),
            "setting `handler.rate` of the handler of event type `placed` of aggregate type `order` is 0; set a number from 1 to 1000000",
        ),
        (
            on_type(order, handler).named("ledger").timeout(Duration::ZERO),
            "setting `handler.timeout` of the handler `ledger` of event type `placed` of aggregate type `order` is 0s; set a duration from 1ms to 36500d, or no limit",
        ),
        (
            on_type(order, handler).named("mailer").retry(zero()),
            "setting `retry.base` of the handler `mailer` of event type `placed` of aggregate type `order` is zero; a retry without a delay would spin; set at least 1 ms",
        ),
        (
            on_type(Events::Others, handler).retry(zero()),
            "setting `retry.base` of the handler of all other events is zero; a retry without a delay would spin; set at least 1 ms",
        ),
        (
            on_type(Events::Others, handler).named("mailer"),
            "setting `handler` of the handler of all other events is named `mailer`; leave it without a name: only the handlers of one type of event have names",
        ),
    ];
    for (registration, expected) in table {
        assert_eq!(refused(|outbox| outbox.handler(registration)).await, expected);
    }
}

#[tokio::test]
async fn handlers_that_contradict_each_other_are_told_by_their_events_and_name() {
    let one = || on_type("placed", handler);
    let others = || on_type(Events::Others, handler);
    for (handlers, event_kind, name) in [
        ([one(), one()], Some(EventKind::from("placed")), None),
        ([one().named("mailer"), one().named("mailer")], Some(EventKind::from("placed")), Some("mailer")),
        ([one().named("mailer"), one()], Some(EventKind::from("placed")), None),
        ([others(), others()], None, None),
    ] {
        let started = Outbox::single_node(MemoryStore::new()).handlers(handlers).start().await;
        let Err(StartError::Handlers(refused)) = started else { panic!("{name:?}: {started:?}") };
        assert_eq!((refused.event_kind(), refused.handler()), (event_kind.as_ref(), name), "{refused}");
    }
}

/// Neither condition replaces the other, whichever comes first.
#[tokio::test]
async fn of_several_conditions_all_have_to_be_true() {
    let of_tenant = |event: &Envelope| event.tenant_id() == Some("partner");
    let dear = |placed: &Placed, _: &Envelope| placed.cents >= 100;
    let store = MemoryStore::new();
    let outbox = Outbox::writer_only(store.clone()).handlers([
        on_type("placed", handler).named("one").accepts(of_tenant).accepts_event(dear),
        on_type("placed", handler).named("other").accepts_event(dear).accepts(of_tenant),
    ]);
    let outbox = outbox.start().await.expect("starts");
    let mut tx = outbox.begin(&store).await.expect("begins");
    for (cents, tenant, events) in [(100, "partner", 1), (99, "partner", 0), (100, "somebody", 0), (99, "somebody", 0)]
    {
        let event = Placed { cents }.to_builder().tenant_id(tenant);
        assert_eq!(outbox.write(&mut tx, event).await.expect("writes").len(), events, "{cents} of {tenant}");
    }
    tx.commit().await.expect("commits");
    outbox.shutdown().await;
    assert_eq!(store.counts().await.expect("counts").new, 2, "a row for each handler");
}

#[tokio::test]
async fn a_writer_that_names_no_handler_is_refused() {
    let none: [&str; 0] = [];
    let refused = Outbox::writer_only(MemoryStore::new()).handled_by("placed", none).start().await;
    let expected = "setting `handled_by` names no handler of event type `placed` of aggregate type `__GLOBAL__`; give their names, or leave \
                    it out if its handler has none";
    assert_eq!(refused.err().map(|error| error.to_string()).unwrap_or_default(), expected);
}

/// Rules for retries that a program gives in code are refused like those that it sets as fields.
#[tokio::test]
async fn a_writer_has_no_retries() {
    let day = Retry::fixed(Duration::from_secs(24 * 3600));
    for (field, retry) in [("retry.policy", day), ("retry.errors", Retry::new().never_retry_on_named("MailError"))] {
        let refused = Outbox::builder(Mode::WriterOnly).store(MemoryStore::new()).retry(retry).start().await;
        let expected = format!("setting `{field}` does not apply to mode writer_only; leave it at its default");
        assert_eq!(refused.err().map(|error| error.to_string()).unwrap_or_default(), expected);
    }
}

/// What an outbox is told of failures holds for every handler that says nothing else, but a head that is to go DEAD at its
/// first failure goes DEAD whatever its handler says.
#[tokio::test]
async fn a_failing_head_that_goes_dead_has_one_attempt_whatever_its_handler_says() {
    let store = MemoryStore::new();
    store.inspect().insert_three_columns("a", "placed", "{}").expect("inserts");
    let patient = on_type("placed", failing).retry(Retry::fixed(Duration::from_millis(1)).max_attempts(5));
    let outbox = Outbox::ordered(store.reopen()).failing_head(FailingHead::DeadAndContinue).handler(patient);
    let outbox = outbox.start().await.expect("starts");
    while store.counts().await.expect("counts").dead == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    assert_eq!(store.inspect().rows()[0].attempts, 1);
}

/// A part of a policy that a handler does not set is the outbox's, in whatever order they are given.
#[tokio::test]
async fn retry_settings_that_a_handler_leaves_open_are_those_of_the_outbox() {
    let store = MemoryStore::new();
    store.inspect().insert_three_columns("a", "placed", "{}").expect("inserts");
    let (told, mut failures) = tokio::sync::mpsc::unbounded_channel();
    let handler = on_type("placed", failing).retry(Retry::new().max_attempts(3));
    let outbox = Outbox::single_node(store.reopen())
        .handler(handler)
        .fallback(move |_: Delivery, failure: Failure| {
            let told = told.send(failure);
            async move { told.map(|()| Outcome::Done).map_err(|_| "nobody listens") }
        })
        .retry(Retry::fixed(Duration::from_millis(1)).max_retries(99));
    let outbox = outbox.start().await.expect("starts");
    let failure = failures.recv().await.expect("the fallback runs");
    assert_eq!((failure.failures(), failure.is_exhausted()), (3, true));
    outbox.shutdown().await;
}

/// A builder takes a whole `Config`, in which every mode finds every setting.
#[tokio::test]
async fn a_changed_setting_that_the_mode_lacks_keeps_the_outbox_from_starting() {
    let mut workers = Config::default();
    workers.dispatch.workers = 4;
    let mut key = Config::default();
    key.retry.failing_key = FailingKey::Continue;
    let mut standby = Config::default();
    standby.ownership.standby_interval = Duration::from_millis(20);
    let store = MemoryStore::new;
    let table = [
        ("dispatch.workers", "ordered", Outbox::ordered(store()).config(workers).handle_all(handler).start().await),
        (
            "retry.failing_key",
            "single_node",
            Outbox::single_node(store()).config(key).handle_all(handler).start().await,
        ),
        (
            "ownership.standby_interval",
            "multi_node",
            Outbox::multi_node(store()).config(standby.clone()).handle_all(handler).start().await,
        ),
        (
            "ownership.standby_interval",
            "partitioned",
            Outbox::partitioned(store()).config(standby).handle_all(handler).start().await,
        ),
    ];
    for (field, mode, started) in table {
        let error = started.err().map(|error| error.to_string()).unwrap_or_default();
        let expected = not_of_mode(field, mode);
        assert_eq!(error, expected);
    }
}

/// The error of a setting that a mode lacks.
fn not_of_mode(field: &str, mode: &str) -> String {
    let (why, instead) = match (field, mode) {
        ("dispatch.workers", "ordered") => (
            ", which handles one event at a time, in the order of the table",
            ", or choose mode partitioned, where events of different keys are handled at once and those of a key in order",
        ),
        _ => ("", ""),
    };
    format!("setting `{field}` does not apply to mode {mode}{why}; leave it at its default{instead}")
}

/// One program, one list of handlers, and a mode that it learns when it runs.
#[tokio::test]
async fn a_mode_that_is_a_value_starts_the_same_outbox_and_refuses_the_same() {
    let list = || [on_type("placed", handler).named("mailer"), on_type("placed", handler).named("ledger")];
    for mode in [Mode::SingleNode, Mode::MultiNode, Mode::Partitioned, Mode::Ordered, Mode::WriterOnly] {
        let store = MemoryStore::new();
        let outbox = Outbox::builder(mode).store(store.clone()).handlers(list()).start().await.expect("starts");
        assert_eq!(outbox.role() == Role::Writing, mode == Mode::WriterOnly, "{mode}");
        let mut tx = outbox.begin(&store).await.expect("begins");
        outbox
            .write(&mut tx, Envelope::builder("placed").payload_json("{}").build().expect("valid"))
            .await
            .expect("writes");
        tx.commit().await.expect("commits");
        outbox.shutdown().await;
        let counts = store.counts().await.expect("counts");
        assert_eq!(counts.new + counts.done, 2, "{mode}: one row for each handler");
    }
    let of = |mode: Mode| Outbox::builder(mode).handlers(list());
    for mode in [Mode::Ordered, Mode::WriterOnly] {
        let error = of(mode).store(MemoryStore::new()).workers(4).start().await.expect_err("refused").to_string();
        assert_eq!(error, not_of_mode("dispatch.workers", mode.name()));
    }
    let homeless = of(Mode::MultiNode).start().await.expect_err("refused").to_string();
    assert_eq!(homeless, "setting `store` is missing; hand one in with `store`");
}

#[tokio::test]
async fn a_writer_that_is_switched_off_purges_nothing() {
    let mut config = Config::default();
    (config.purge.all_after, config.purge.interval) = (Some(Duration::from_millis(1)), Duration::from_secs(1));
    let writer = async |enabled| {
        let store = MemoryStore::new();
        let builder = Outbox::builder(Mode::WriterOnly).store(store.clone()).config(config.clone()).enabled(enabled);
        (store, builder.start().await.expect("starts"))
    };
    let write = async |store: &MemoryStore, outbox: &Outbox| {
        let mut tx = store.begin();
        let event = Envelope::builder("placed").payload_json("{}").build().expect("an event");
        drop(outbox.write(&mut tx, event).await.expect("writes"));
        tx.commit();
    };
    let ((off, switched_off), (on, switched_on)) = (writer(false).await, writer(true).await);
    write(&off, &switched_off).await;
    // The other one, which began later, has purged twice by then.
    for purged in [1, 2] {
        write(&on, &switched_on).await;
        while switched_on.stats().purged < purged {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!((off.counts().await.expect("counts").new, switched_off.stats().purged), (1, 0));
    switched_off.shutdown().await;
    switched_on.shutdown().await;
}

/// A clock that is decades behind.
#[derive(Debug)]
struct Behind;

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_000_000_000_000_000)
    }
}

/// An event from memory is new, whatever the clock of this host says: it stamps events, and gives none up.
#[tokio::test]
async fn an_event_from_memory_is_not_too_old_for_a_handler() -> Result<(), BoxError> {
    let store = MemoryStore::new();
    store.migrate().await?;
    let outbox = Outbox::single_node(store.clone())
        .clock(Behind)
        .handle_type("test.known", handler)
        .unroutable(Unroutable::Park(Duration::from_millis(5)))
        .unroutable_dead_after(Duration::from_millis(50))
        .start()
        .await?;
    let write = async || -> Result<(), BoxError> {
        let mut tx = outbox.begin(&store).await?;
        outbox.write(&mut tx, Envelope::json("test.unknown", "{}")?).await?;
        tx.commit().await?;
        Ok(())
    };
    // The process has to have met the type for as long as an event may wait.
    write().await?;
    while outbox.stats().dead < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = outbox.stats();
    write().await?;
    while outbox.stats().dead < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let after = outbox.stats();
    assert_eq!(after.hot, before.hot + 1, "it came from memory");
    assert!(after.deferred > before.deferred, "it was parked before it was given up: {after:?}");
    outbox.shutdown().await;
    Ok(())
}
