//! Writer hooks: what each may do, when each is called, and that each end of a write is told once.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::write::WriteError;
use pillarbox_core::write::WriterHook;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;

/// The calls of all hooks, in their order.
type Calls = Arc<Mutex<Vec<String>>>;

/// A hook that notes its calls, by its name.
struct Noting {
    name: &'static str,
    calls: Calls,
}

impl Noting {
    fn note(&self, stage: &str, events: usize) {
        self.calls.lock().expect("not poisoned").push(format!("{} {stage} {events}", self.name));
    }
}

impl WriterHook for Noting {
    fn before_write(&self, events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        self.note("before", events.len());
        Ok(events)
    }
    fn after_write(&self, events: &[&Envelope]) {
        self.note("written", events.len());
    }
    fn after_commit(&self, events: &[&Envelope]) {
        self.note("committed", events.len());
    }
    fn after_rollback(&self, events: &[&Envelope]) {
        self.note("rolled back", events.len());
    }
}

/// A hook that keeps the events of which it is told `true`.
struct Keeping(fn(&Envelope) -> bool);

impl WriterHook for Keeping {
    fn before_write(&self, mut events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        events.retain(self.0);
        Ok(events)
    }
}

/// A hook that refuses events of the type `refused`.
struct Refusing;

impl WriterHook for Refusing {
    fn before_write(&self, events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        match events.iter().find(|event| event.event_type() == "refused") {
            Some(_) => Err("this type is not for here".into()),
            None => Ok(events),
        }
    }
}

/// A hook that panics once the events are in the table.
struct Panicking;

impl WriterHook for Panicking {
    fn after_write(&self, _: &[&Envelope]) {
        panic!("after the write");
    }
    fn after_commit(&self, _: &[&Envelope]) {
        panic!("after the commit");
    }
    fn after_rollback(&self, _: &[&Envelope]) {
        panic!("after the rollback");
    }
}

struct Setting {
    store: MemoryStore,
    outbox: Outbox,
    calls: Calls,
}

impl Setting {
    /// An outbox with the hooks `a`, the others, and `b`.
    async fn with(other: impl WriterHook) -> Self {
        let (store, calls) = (MemoryStore::new(), Calls::default());
        let noting = |name| Noting { name, calls: Arc::clone(&calls) };
        let builder = Outbox::single_node(store.clone()).handle_all(|_: Delivery| async {});
        let builder = builder.writer_hook(Arc::new(noting("a"))).writer_hook(other).writer_hook(noting("b"));
        let outbox = builder.start().await.expect("starts");
        Self { store, outbox, calls }
    }

    async fn plain() -> Self {
        Self::with(Keeping(|_| true)).await
    }

    /// What was called since this was last asked.
    fn called(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().expect("not poisoned"))
    }

    fn rows(&self) -> Vec<String> {
        let rows = self.store.inspect().rows();
        rows.iter().map(|row| row.event.event_type().to_owned()).collect()
    }
}

/// Hooks see what was written, and of an event whose unique key another one has only that it was to be written.
#[tokio::test]
async fn events_with_a_pending_unique_key_are_not_told_as_written() {
    let setting = Setting::plain().await;
    let unique = || Envelope::builder("unique").unique_key("k").payload_json("{}").build().expect("valid");
    let mut transaction = setting.outbox.begin(&setting.store).await.expect("begins");
    let written = setting.outbox.write_all(&mut transaction, [unique(), event("plain"), unique()]).await;
    let written = written.expect("is written");
    assert_eq!((written.len(), written.skipped().len()), (2, 1));
    assert_eq!(setting.called(), ["a before 3", "b before 3", "b written 2", "a written 2"]);
    let written = setting.outbox.write(&mut transaction, unique()).await.expect("is no error");
    assert!(written.is_empty() && written.id().is_none());
    assert_eq!(setting.called(), ["a before 1", "b before 1"]);
    transaction.commit().await.expect("commits");
    assert_eq!(setting.called(), ["b committed 2", "a committed 2"]);
    assert_eq!(setting.rows(), ["unique", "plain"]);
    setting.outbox.shutdown().await;
}

fn event(event_type: &str) -> Envelope {
    Envelope::json(event_type, "{}").expect("valid")
}

#[tokio::test]
async fn hooks_run_in_order_before_the_write_and_in_reverse_after_it_once_per_batch() {
    let setting = Setting::plain().await;
    let mut guarded = setting.outbox.begin(&setting.store).await.expect("begins");
    setting.outbox.write_all(&mut guarded, [event("x"), event("y")]).await.expect("writes");
    assert_eq!(setting.called(), ["a before 2", "b before 2", "b written 2", "a written 2"]);
    setting.outbox.write(&mut guarded, event("z")).await.expect("writes");
    setting.called();
    guarded.commit().await.expect("commits");
    assert_eq!(setting.called(), ["b committed 2", "a committed 2", "b committed 1", "a committed 1"]);

    let mut dropped = setting.outbox.begin(&setting.store).await.expect("begins");
    setting.outbox.write(&mut dropped, event("x")).await.expect("writes");
    setting.called();
    drop(dropped);
    assert_eq!(setting.called(), ["b rolled back 1", "a rolled back 1"]);
    setting.outbox.shutdown().await;
}

#[tokio::test]
async fn a_hook_that_drops_events_keeps_them_from_later_hooks_and_from_the_table() {
    let setting = Setting::with(Keeping(|event| event.event_type() == "kept")).await;
    let mut guarded = setting.outbox.begin(&setting.store).await.expect("begins");
    let kept = event("kept");
    let events = [event("dropped"), kept.clone(), event("dropped")];
    let written = setting.outbox.write_all(&mut guarded, events).await.expect("writes");
    assert!(written.ids().eq([kept.id()]));
    assert_eq!(setting.called(), ["a before 3", "b before 1", "b written 1", "a written 1"]);

    let nothing = setting.outbox.write(&mut guarded, event("dropped")).await.expect("writes nothing");
    assert!(nothing.is_empty() && nothing.id().is_none());
    guarded.commit().await.expect("commits");
    assert_eq!(setting.called(), ["a before 1", "b committed 1", "a committed 1"], "of the other one no more is told");
    assert_eq!(setting.rows(), ["kept"]);
    setting.outbox.shutdown().await;
}

#[tokio::test]
async fn a_hook_that_fails_aborts_the_write_and_leaves_the_transaction_usable() {
    let setting = Setting::with(Refusing).await;
    let mut guarded = setting.outbox.begin(&setting.store).await.expect("begins");
    let refused = setting.outbox.write_all(&mut guarded, [event("taken"), event("refused")]).await;
    let Err(WriteError::Hook(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.to_string(), "this type is not for here");
    assert_eq!(setting.called(), ["a before 2"]);
    setting.outbox.write(&mut guarded, event("next")).await.expect("writes");
    guarded.commit().await.expect("commits");
    assert_eq!(setting.rows(), ["next"]);
    setting.outbox.shutdown().await;
}

#[tokio::test]
async fn a_hook_that_panics_after_the_write_disturbs_nobody() {
    let setting = Setting::with(Panicking).await;
    let mut guarded = setting.outbox.begin(&setting.store).await.expect("begins");
    setting.outbox.write(&mut guarded, event("x")).await.expect("the write stands");
    guarded.commit().await.expect("commits");
    let mut guarded = setting.outbox.begin(&setting.store).await.expect("begins");
    setting.outbox.write(&mut guarded, event("y")).await.expect("the write stands");
    guarded.rollback().await.expect("rolls back");
    let stages = |hook: &'static str| {
        ["written", "committed", "written", "rolled back"].map(|stage| format!("{hook} {stage} 1"))
    };
    let called = setting.called();
    for hook in ["a", "b"] {
        let of: Vec<String> =
            called.iter().filter(|call| call.starts_with(hook) && !call.contains("before")).cloned().collect();
        assert_eq!(of, stages(hook));
    }
    assert_eq!(setting.rows(), ["x"]);
    setting.outbox.shutdown().await;
}

#[tokio::test]
async fn the_end_of_a_write_is_told_once_whoever_reports_it_again() {
    let setting = Setting::plain().await;
    let Setting { store, outbox, .. } = &setting;
    let ends = |setting: &Setting| {
        let called = setting.called().into_iter();
        called
            .filter(|call| call.starts_with('a') && !call.contains("before") && !call.contains("written"))
            .collect::<Vec<_>>()
    };

    let mut own = store.begin();
    let receipt = outbox.write(&mut own, event("x")).await.expect("writes");
    own.commit();
    outbox.notify_committed(receipt.clone());
    outbox.notify_committed(receipt);
    assert_eq!(ends(&setting), ["a committed 1"]);

    let mut guarded = outbox.begin(store).await.expect("begins");
    let receipt = outbox.write(&mut guarded, event("x")).await.expect("writes");
    guarded.commit().await.expect("commits");
    outbox.notify_committed(receipt);
    assert_eq!(ends(&setting), ["a committed 1"]);

    let mut guarded = outbox.begin(store).await.expect("begins");
    let receipt = outbox.write(&mut guarded, event("x")).await.expect("writes");
    guarded.rollback().await.expect("rolls back");
    outbox.notify_committed(receipt);
    assert_eq!(ends(&setting), ["a rolled back 1"], "and a rollback is not made a commit");

    let mut own = store.begin();
    let receipt = outbox.write(&mut own, event("x")).await.expect("writes");
    outbox.commit(own, receipt.clone()).await.expect("commits");
    outbox.notify_committed(receipt);
    assert_eq!(ends(&setting), ["a committed 1"]);
    outbox.shutdown().await;
}
