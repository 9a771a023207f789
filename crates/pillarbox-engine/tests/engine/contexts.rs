//! Contexts travel with events: captured at the write, in force around the handler, and never in the way.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, and panics are what is tested")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::context::ContextProvider;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EnvelopeBuilder, Headers, limits};
use pillarbox_core::handle::{BoxFuture, Delivery, Path};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::write::WriterHook;
use pillarbox_engine::handlers::on_batch;
use pillarbox_engine::run::{Outbox, SingleNode};
use pillarbox_memory::MemoryStore;

tokio::task_local! { static USER: String; }

fn user() -> Option<String> {
    USER.try_with(Clone::clone).ok()
}

/// Carries [`USER`], as an application would.
struct CurrentUser;

impl ContextProvider for CurrentUser {
    fn capture(&self, _: &Envelope) -> Result<Headers, BoxError> {
        Ok(user().map(|user| ("user", user)).into_iter().collect())
    }

    fn restore<'a>(&'a self, headers: &'a Headers, call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        match headers.get("user") {
            Some(user) => Box::pin(USER.scope(user.to_owned(), call)),
            None => call,
        }
    }

    fn restore_batch<'a>(&'a self, headers: &'a [&'a Headers], call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        let users: Vec<_> = headers.iter().map(|headers| headers.get("user").unwrap_or("nobody")).collect();
        Box::pin(USER.scope(users.join("+"), call))
    }
}

/// Goes wrong in one way at each end.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Panics,
    PanicsLate,
    Fails,
    Drops,
    TooMuch,
    NoName,
}

const ALL_BROKEN: [Broken; 6] =
    [Broken::Panics, Broken::PanicsLate, Broken::Fails, Broken::Drops, Broken::TooMuch, Broken::NoName];

impl ContextProvider for Broken {
    fn capture(&self, _: &Envelope) -> Result<Headers, BoxError> {
        match self {
            Self::Panics | Self::PanicsLate => panic!("at the write"),
            Self::Fails | Self::Drops => Err("no context today".into()),
            Self::TooMuch => {
                Ok([("small", "1".to_owned()), ("big", "x".repeat(limits::HEADER_BYTES))].into_iter().collect())
            }
            Self::NoName => Ok([("", "1")].into_iter().collect()),
        }
    }

    fn restore<'a>(&'a self, _: &'a Headers, mut call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        match self {
            Self::Panics => panic!("at the call"),
            // The handler has begun by then, and goes on.
            Self::PanicsLate => Box::pin(async move {
                std::future::poll_fn(|task| {
                    let _ = call.as_mut().poll(task);
                    std::task::Poll::Ready(())
                })
                .await;
                panic!("during the call");
            }),
            Self::Drops => Box::pin(async move { drop(call) }),
            Self::Fails | Self::TooMuch | Self::NoName => call,
        }
    }

    fn relate(&self, _: &tracing::Span, _: &[&Headers]) {
        panic!("at the span");
    }
}

fn outbox(store: &MemoryStore) -> SingleNode {
    let short = Duration::from_millis(1);
    let backoff = ExponentialBackoff::new(short, short).expect("valid");
    Outbox::single_node(store.clone()).workers(1).max_attempts(2).retry_policy(backoff)
}

fn event() -> EnvelopeBuilder {
    Envelope::builder("counted").payload_json("1")
}

async fn write(outbox: &Outbox, store: &MemoryStore, events: Vec<EnvelopeBuilder>, reported: bool) {
    let mut tx = store.begin();
    let written = outbox.write_all(&mut tx, events).await.expect("writes");
    tx.commit();
    if reported {
        outbox.notify_committed(written);
    }
}

async fn drained(outbox: &Outbox, events: u64) {
    let drained = async {
        while outbox.stats().done + outbox.stats().dead < events {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), drained).await.expect("the backlog is drained");
}

type Seen<T> = Arc<Mutex<Vec<T>>>;

fn taken<T>(seen: &Seen<T>) -> Vec<T> {
    std::mem::take(&mut *seen.lock().expect("not poisoned"))
}

/// What a handler was called with: the user, the path, the attempt.
type Call = (Option<String>, Path, u32);

/// A handler that notes its calls, and fails the first time.
fn failing_once(
    seen: &Seen<Call>,
) -> impl Fn(Delivery) -> BoxFuture<'static, Result<(), String>> + Send + Sync + use<> {
    let seen = Arc::clone(seen);
    move |delivery| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            // The context is there after an await as well.
            tokio::task::yield_now().await;
            seen.lock().expect("not poisoned").push((user(), delivery.path(), delivery.attempt()));
            if delivery.is_retry() { Ok(()) } else { Err("the first time".to_owned()) }
        })
    }
}

fn ann() -> Option<String> {
    Some("ann".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_context_reaches_the_handler_hot_cold_and_at_every_retry() {
    for (reported, path) in [(true, Path::Hot), (false, Path::Cold)] {
        let (store, seen) = (MemoryStore::new(), Seen::default());
        let outbox = outbox(&store)
            .context(Arc::new(CurrentUser))
            .handle_all(failing_once(&seen))
            .start()
            .await
            .expect("starts");
        // With one event delivered, the outbox is certain to take what is reported from memory.
        write(&outbox, &store, vec![event()], reported).await;
        drained(&outbox, 1).await;
        let without: Vec<_> = taken(&seen).into_iter().map(|(user, ..)| user).collect();
        assert_eq!(without, [None, None]);
        USER.scope("ann".to_owned(), write(&outbox, &store, vec![event()], reported)).await;
        drained(&outbox, 2).await;
        outbox.shutdown().await;
        assert_eq!(taken(&seen), [(ann(), path, 1), (ann(), Path::Cold, 2)]);
    }
}

#[tokio::test]
async fn writer_only_outboxes_capture_contexts_and_another_process_restores_them() {
    let (store, seen) = (MemoryStore::new(), Seen::default());
    let writer = Outbox::writer_only(store.clone()).context(Arc::new(CurrentUser)).start().await.expect("starts");
    USER.scope("ann".to_owned(), write(&writer, &store, vec![event()], false)).await;
    writer.shutdown().await;
    let outbox = outbox(&store).context(CurrentUser).handle_all(failing_once(&seen)).start().await.expect("starts");
    drained(&outbox, 1).await;
    outbox.shutdown().await;
    assert_eq!(taken(&seen), [(ann(), Path::Cold, 1), (ann(), Path::Cold, 2)]);
}

/// Adds an event to every batch, and a header to the first one.
struct Doubles;

impl WriterHook for Doubles {
    fn before_write(&self, mut events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        assert!(events.iter().all(|event| event.headers().get("user") != Some("ann")), "captured after the hooks");
        events.push(event().header("user", "hook").build()?);
        events.push(event().build()?);
        Ok(events)
    }
}

#[tokio::test]
async fn headers_of_the_event_win_and_events_of_hooks_have_a_context() {
    struct Other;
    impl ContextProvider for Other {
        fn capture(&self, event: &Envelope) -> Result<Headers, BoxError> {
            assert!(event.headers().get("user").is_some(), "later providers see what earlier ones added");
            Ok([("user", "other"), ("color", "red")].into_iter().collect())
        }
    }
    let (store, seen) = (MemoryStore::new(), Seen::default());
    let users = Arc::clone(&seen);
    let handler = move |delivery: Delivery| {
        let header = |name| delivery.headers().get(name).map(str::to_owned);
        users.lock().expect("not poisoned").push((header("user"), header("color")));
        async {}
    };
    let outbox = outbox(&store).context(CurrentUser).context(Other).writer_hook(Doubles).handle_all(handler);
    let outbox = outbox.start().await.expect("starts");
    let events = vec![event().header("user", "site").header("color", "blue"), event()];
    USER.scope("ann".to_owned(), write(&outbox, &store, events, false)).await;
    drained(&outbox, 4).await;
    outbox.shutdown().await;
    let expected = [("site", "blue"), ("ann", "red"), ("hook", "red"), ("ann", "red")];
    let owned = |text: &str| Some(text.to_owned());
    assert_eq!(taken(&seen), expected.map(|(user, color)| (owned(user), owned(color))));
}

#[tokio::test]
async fn a_broken_provider_is_left_out_and_the_others_are_not() {
    for broken in ALL_BROKEN {
        let (store, seen) = (MemoryStore::new(), Seen::default());
        let outbox = outbox(&store).context(broken).context(CurrentUser).context(broken);
        let outbox = outbox.handle_all(failing_once(&seen)).start().await.expect("starts");
        USER.scope("ann".to_owned(), write(&outbox, &store, vec![event()], false)).await;
        drained(&outbox, 1).await;
        outbox.shutdown().await;
        assert_eq!(taken(&seen), [(ann(), Path::Cold, 1), (ann(), Path::Cold, 2)], "{broken:?}");
        assert_eq!(outbox.stats().done, 1, "{broken:?}");
        let rows = store.inspect().rows();
        assert_eq!(rows.len(), 1);
        let headers: Vec<_> = rows[0].event.headers().iter().collect();
        assert_eq!(headers, [("user", "ann")], "{broken:?}");
    }
}

#[tokio::test]
async fn a_panic_of_the_handler_is_the_handlers() {
    let (store, calls) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&calls);
    let handler = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { panic!("the handler's own") }
    };
    let handler = move |delivery: Delivery| -> BoxFuture<'static, ()> { Box::pin(handler(delivery)) };
    let outbox = outbox(&store).context(CurrentUser).handle_all(handler).start().await.expect("starts");
    USER.scope("ann".to_owned(), write(&outbox, &store, vec![event()], false)).await;
    drained(&outbox, 1).await;
    outbox.shutdown().await;
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert_eq!(store.inspect().rows()[0].last_error.as_deref(), Some("the handler panicked: the handler's own"));
}

#[tokio::test]
async fn a_batch_has_the_contexts_of_all_its_events_and_of_one_its_own() {
    let (store, seen) = (MemoryStore::new(), Seen::default());
    let writer = Outbox::writer_only(store.clone()).context(CurrentUser).start().await.expect("starts");
    USER.scope("ann".to_owned(), write(&writer, &store, vec![event(), event()], false)).await;
    USER.scope("bob".to_owned(), write(&writer, &store, vec![event()], false)).await;
    let users = Arc::clone(&seen);
    let handler = move |deliveries: Vec<Delivery>| {
        let users = Arc::clone(&users);
        async move {
            users.lock().expect("not poisoned").push(user());
            vec![(); deliveries.len()]
        }
    };
    let outbox = outbox(&store)
        .context(Arc::new(CurrentUser))
        .handler(on_batch("counted", 2, handler))
        .start()
        .await
        .expect("starts");
    drained(&outbox, 3).await;
    outbox.shutdown().await;
    assert_eq!(taken(&seen), [Some("ann+ann".to_owned()), Some("bob".to_owned())]);
}
