use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use pillarbox_console::{Access, Console, Role, Source};
use pillarbox_core::publisher::PublishError;
use pillarbox_core::row::Status;
use pillarbox_core::store::Admin as _;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Route, RouteState, Routes};
use pillarbox_testkit::publishers::{self, MemoryPublisher};
use pillarbox_testkit::{Fault, FaultyStore, Operation};

use crate::site::{Answer, Site, event, write, write_dead};

fn statuses(store: &MemoryStore) -> Vec<Status> {
    store.inspect().rows().iter().map(|row| row.status).collect()
}

/// Confirms what a page asks about, as its form does.
async fn confirm(site: &Site, asked: &str) -> Answer {
    let question = site.get(&format!("/s/shop/confirm?{asked}")).await;
    assert_eq!(question.status, StatusCode::OK, "{question:?}");
    let (token, count) = (question.field("token"), question.field("count"));
    let row = if asked.contains("seq=") {
        format!("&row_event={}&row_handler={}", question.field("row_event"), question.field("row_handler"))
    } else {
        String::new()
    };
    site.post("/s/shop/act", &format!("{asked}&token={token}&count={count}{row}"), &[]).await
}

/// Waits for the end of a change, and returns its page.
async fn end_of(site: &Site, answer: &Answer) -> String {
    let path = format!("/s/shop/{}", answer.header("location"));
    let ended = async {
        loop {
            let page = site.get(&path).await.body;
            if !page.contains("so far") {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it ends")
}

#[tokio::test]
async fn a_confirmation_names_the_number_and_changes_nothing() {
    let store = MemoryStore::new();
    write_dead(&store, (0..3).map(|_| event("order.placed")).chain([event("order.paid")])).await;
    let site = Site::open(&store);
    for (asked, question) in [
        ("do=replay", "Replay 4 rows?"),
        ("do=replay&type=order.placed", "Replay 3 rows with type order.placed?"),
        ("do=discard&error=declined&since=1h", "Discard 4 rows with error declined, since 1h?"),
    ] {
        let page = site.get(&format!("/s/shop/confirm?{asked}")).await;
        assert!(page.body.contains(question), "{asked}: {}", page.body);
    }
    let none = site.get("/s/shop/confirm?do=replay&type=no.such").await;
    assert!(
        none.body.contains("nothing to change")
            && !none.body.contains("<form method=\"post\" action=\"../../s/shop/act\"")
    );
    assert_eq!(statuses(&store), [Status::Dead; 4]);
}

#[tokio::test]
async fn all_that_match_are_replayed_and_the_others_are_left_alone() {
    let store = MemoryStore::new();
    write_dead(&store, (0..1_200).map(|_| event("order.placed")).chain([event("order.paid")])).await;
    let site = Site::open(&store);
    let answer = confirm(&site, "do=replay&type=order.placed").await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "job/1"));
    let page = end_of(&site, &answer).await;
    assert!(page.contains("1,200 rows were replayed") && page.contains("Begun by local"), "{page}");
    let dead: Vec<_> = store.inspect().rows().into_iter().filter(|row| row.status == Status::Dead).collect();
    assert_eq!(dead.len(), 1);
    assert_eq!(store.inspect().rows().iter().filter(|row| row.replays == 1).count(), 1_200);
}

#[tokio::test]
async fn all_are_discarded() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed"), event("order.placed")]).await;
    let site = Site::open(&store);
    let answer = confirm(&site, "do=discard").await;
    assert!(end_of(&site, &answer).await.contains("2 rows were discarded"));
    assert!(statuses(&store).is_empty());
}

#[tokio::test]
async fn one_row_is_replayed_and_another_discarded() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed"), event("order.placed")]).await;
    let site = Site::open(&store);
    let seqs: Vec<i64> = store.inspect().rows().iter().map(|row| row.seq).collect();
    let answer = confirm(&site, &format!("do=replay&seq={}", seqs[0])).await;
    assert_eq!(answer.header("location"), format!("event/{}", seqs[0]));
    assert_eq!(statuses(&store), [Status::New, Status::Dead]);
    let answer = confirm(&site, &format!("do=discard&seq={}", seqs[1])).await;
    assert_eq!(answer.header("location"), "dead", "it has no page any more");
    assert_eq!(statuses(&store), [Status::New]);
}

#[tokio::test]
async fn pending_rows_are_tried_now_and_cancelled() {
    let store = MemoryStore::new();
    let later = |event_type| event(event_type).deliver_after(Duration::from_secs(3_600));
    write(&store, [later("order.due"), later("order.due"), event("order.placed")]).await;
    let site = Site::open(&store);
    let answer = confirm(&site, "do=retry-now").await;
    assert!(end_of(&site, &answer).await.contains("2 rows were made due now"));
    let answer = confirm(&site, "do=cancel&type=order.placed").await;
    assert!(end_of(&site, &answer).await.contains("1 row was cancelled"));
    assert_eq!(statuses(&store), [Status::New, Status::New, Status::Done]);
}

/// A filter that is mistyped matches everything: `tennant=acme` would ask whether to discard the events of all tenants.
#[tokio::test]
async fn a_filter_that_is_mistyped_is_refused_before_anything_is_asked() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed").tenant_id("acme"), event("order.placed").tenant_id("other")]).await;
    let site = Site::open(&store);
    for path in
        ["confirm?do=discard&tennant=acme", "confirm?do=cancel&Type=a", "dead?tennant=acme", "events?tennant=acme"]
    {
        let answer = site.get(&format!("/s/shop/{path}")).await;
        assert!(
            answer.status == StatusCode::BAD_REQUEST && answer.body.contains("is no filter; filters are `type`,"),
            "{path}: {answer:?}"
        );
        assert!(!answer.body.contains("<form"), "{path}: {answer:?}");
    }
    let right = site.get("/s/shop/confirm?do=discard&tenant=acme").await;
    assert!(right.body.contains("Discard 1 row with tenant acme?"), "{right:?}");
    let answer = confirm(&site, "do=discard&tenant=acme").await;
    assert!(end_of(&site, &answer).await.contains("1 row was discarded"));
    assert_eq!(statuses(&store), [Status::Dead]);
}

#[tokio::test]
async fn invalid_forms_are_refused_and_change_nothing() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = Site::open(&store);
    let token = site.get("/s/shop/confirm?do=replay").await.field("token").to_owned();
    for (form, part) in [
        (format!("do=destroy&token={token}"), "The form is incomplete"),
        (format!("token={token}"), "The form is incomplete"),
        (format!("do=replay&seq=x&token={token}"), "`seq` is no number"),
        (format!("do=discard&since=yesterday&count=1&token={token}"), "`since`: it is neither an age"),
        (format!("do=discard&token={token}"), "`count` is no number"),
        (format!("do=discard&state=done&count=9&token={token}"), "`state` is no filter of DEAD events"),
        (format!("do=cancel&error=none&count=9&token={token}"), "`error` is no filter of pending events"),
        (format!("do=cancel&state=dead&count=1&token={token}"), "`state` is none of"),
        (format!("do=discard&tennant=acme&count=1&token={token}"), "`tennant` is no filter"),
    ] {
        let answer = site.post("/s/shop/act", &form, &[]).await;
        assert!(answer.status == StatusCode::BAD_REQUEST && answer.body.contains(part), "{form}: {}", answer.body);
    }
    let gone = site.post("/s/shop/act", &format!("do=replay&seq=9999&token={token}"), &[]).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let long = site.post("/s/shop/act", &format!("do=replay&type={}&token={token}", "x".repeat(70_000)), &[]).await;
    assert_eq!(long.status, StatusCode::BAD_REQUEST, "a form is bounded");
    assert_eq!(statuses(&store), [Status::Dead]);
}

#[tokio::test]
async fn each_change_is_recorded_with_who_what_and_how_many() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed"), event("order.placed"), event("order.paid")]).await;
    let site = Site::open(&store);
    let first = store.inspect().rows()[0].seq;
    confirm(&site, &format!("do=replay&seq={first}")).await;
    let answer = confirm(&site, "do=discard&type=order.placed").await;
    end_of(&site, &answer).await;
    let entries = store.actions(None, 10).await.expect("entries");
    let told: Vec<_> =
        entries.iter().map(|entry| (&*entry.who, &*entry.action, entry.changed, entry.outcome.as_deref())).collect();
    assert_eq!(told, [("local", "discard", Some(1), Some("done")), ("local", "replay", Some(1), Some("done"))]);
    assert_eq!(entries[0].subject, "type order.placed");
    assert!(entries[1].subject.starts_with(&format!("row {first}, event ")), "{entries:?}");
    let page = site.get("/s/shop/audit").await.body;
    assert!(page.contains("type order.placed") && page.matches("id=\"entry-").count() == 2, "{page}");
}

#[tokio::test]
async fn a_change_that_came_too_late_is_recorded_as_refused() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = Site::open(&store);
    let seq = store.inspect().rows()[0].seq;
    let asked = format!("do=replay&seq={seq}");
    let question = site.get(&format!("/s/shop/confirm?{asked}")).await;
    confirm(&site, &asked).await;
    let [token, count, event, handler] =
        ["token", "count", "row_event", "row_handler"].map(|name| question.field(name).to_owned());
    let form = format!("{asked}&token={token}&count={count}&row_event={event}&row_handler={handler}");
    site.post("/s/shop/act", &form, &[]).await;
    let outcome = store.actions(None, 1).await.expect("entries")[0].outcome.clone();
    assert_eq!(outcome.as_deref(), Some("refused: it was not DEAD any more"));
    let page = site.get("/s/shop/audit").await.body;
    assert!(page.contains(" refused<") && !page.contains(" failed<"), "{page}");
}

#[tokio::test]
async fn types_and_handlers_are_paused_and_resumed() {
    let store = MemoryStore::new();
    write(&store, [event("order.placed"), event("order.placed"), event("order.paid")]).await;
    let site = Site::open(&store);
    let token = site.get("/s/shop/pauses").await.field("token").to_owned();
    let pause = async |form: &str| site.post("/s/shop/pause", &format!("{form}&token={token}"), &[]).await;
    for (form, part) in [
        ("kind=type&name=%20", "The name of the type is missing"),
        ("kind=queue&name=order.placed", "The form is incomplete"),
        ("kind=type&name=order.placed&for=soon", "such as `30m`"),
        ("kind=type&name=order.placed&for=0s", "setting `pause.for` is 0ns"),
    ] {
        let answer = pause(form).await;
        assert!(answer.status == StatusCode::BAD_REQUEST && answer.body.contains(part), "{form}: {}", answer.body);
    }
    assert_eq!(store.pauses().await.expect("a list"), []);

    let answer = pause("kind=type&name=order.placed&reason=the+%3Cpartner%3E+is+away&for=2h").await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "pauses"));
    let answer = pause("kind=handler&name=mailer").await;
    assert_eq!(answer.header("location"), "pauses?unknown=mailer");
    let page = site.get("/s/shop/pauses?unknown=mailer").await.body;
    assert!(page.contains("No recent event is of the handler <code>mailer</code>"), "{page}");
    let page = site.get("/s/shop/pauses?unknown=somebody").await.body;
    assert!(!page.contains("No recent event"), "what is not paused is not told of: {page}");
    let pauses = store.pauses().await.expect("a list");
    let told: Vec<_> = pauses.iter().map(|pause| (&*pause.name, pause.by.as_deref(), pause.until.is_some())).collect();
    assert_eq!(told, [("order.placed", Some("local"), true), ("mailer", Some("local"), false)]);
    let again = format!("kind=type&name=order.placed&reason=mine&token={token}");
    let answer = site.post("/s/shop/pause", &again, &[]).await;
    assert!(answer.status == StatusCode::CONFLICT && answer.body.contains("paused already"), "{answer:?}");
    assert!(answer.body.contains("by local: the &lt;partner&gt; is away"), "{}", answer.body);
    let page = site.get("/s/shop/pauses").await.body;
    for part in ["They hold 2 rows", "the &lt;partner&gt; is away", "mailer"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let seq = store.inspect().rows()[0].seq;
    let page = site.get(&format!("/s/shop/event/{seq}")).await.body;
    assert!(page.contains("It waits: the type order.placed is paused"), "{page}");

    let form = format!("kind=type&name=order.placed&token={token}");
    let answer = site.post("/s/shop/resume", &form, &[]).await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "pauses"));
    let again = site.post("/s/shop/resume", &form, &[]).await;
    assert!(again.status == StatusCode::BAD_REQUEST && again.body.contains("not paused any more"), "{again:?}");
    assert_eq!(store.pauses().await.expect("a list").len(), 1);
    let entries = store.actions(None, 20).await.expect("entries");
    let told: Vec<_> =
        entries.iter().map(|entry| (&*entry.action, &*entry.subject, entry.outcome.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("resume", "type order.placed", Some("refused: it was not paused any more")),
            ("resume", "type order.placed", Some("done")),
            ("pause", "handler mailer", Some("done")),
            ("pause", "type order.placed, for 7200s, reason the <partner> is away", Some("done")),
            (
                "pause",
                "type order.placed, for 0ns",
                Some(
                    "could not pause an event type or a handler: setting `pause.for` is 0ns; set a time from 1ms to 3650 days, or none to pause until it is resumed"
                )
            ),
        ]
    );
}

#[tokio::test]
async fn a_route_is_tried_paused_and_resumed() {
    let (store, broker) = (MemoryStore::new(), MemoryPublisher::new());
    broker.answer(publishers::Answer::Fail(PublishError::unavailable("connection refused")));
    let routes = Routes::new().route(Route::to(Arc::new(broker), "orders").named("orders").types(["order.*"]));
    let forwarder = routes.route(Route::drop().named("noise")).build().expect("valid");
    forwarder.begin(Duration::from_millis(1)).await.expect("nobody refuses anything");
    let source = Source::of_store("shop", Arc::new(store.clone())).routes(forwarder.clone());
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    let page = site.get("/s/shop/routes").await;
    for part in ["connection refused", "Probe now", "/s/shop/pause-route"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert_eq!(page.body.matches("/s/shop/pause-route").count(), 1, "what drops its events cannot be paused");
    let token = page.field("token").to_owned();
    let target = format!("route=orders&target=nobody&token={token}");
    let answer = site.post("/s/shop/probe", &target, &[]).await;
    assert!(answer.status == StatusCode::CONFLICT && answer.body.contains("the target is not paused"), "{answer:?}");
    let entries = store.actions(None, 1).await.expect("entries");
    assert_eq!(entries[0].subject, "target nobody of route orders");
    for part in ["type order.*", "every event", "it drops what it takes"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    let press = async |action: &str, route: &str| {
        let form = format!("route={route}&reason=they+move&token={token}");
        site.post(&format!("/s/shop/{action}"), &form, &[]).await
    };
    for reason in ["+".to_owned(), "x".repeat(201)] {
        let form = format!("route=orders&reason={reason}&token={token}");
        let answer = site.post("/s/shop/pause-route", &form, &[]).await;
        assert!(
            answer.status == StatusCode::BAD_REQUEST && answer.body.contains("why the route is paused"),
            "{answer:?}"
        );
    }
    assert_eq!(press("pause-route", "nowhere").await.status, StatusCode::NOT_FOUND);
    let (done, refused) = (StatusCode::SEE_OTHER, StatusCode::CONFLICT);
    for (action, route, status) in [
        ("probe", "orders", done),
        ("pause-route", "orders", done),
        ("probe", "orders", refused),
        ("resume-route", "orders", done),
        ("resume-route", "orders", refused),
        ("pause-route", "noise", refused),
        ("pause-route", "orders", done),
    ] {
        assert_eq!(press(action, route).await.status, status, "{action} {route}");
    }
    let RouteState::PausedByOperator { reason, problem: Some(problem) } = forwarder.status()[0].state.clone() else {
        panic!("{:?}", forwarder.status())
    };
    assert_eq!(reason, "they move (by local)");
    assert!(problem.contains("connection refused"), "{problem}");
    let page = site.get("/s/shop/routes").await.body;
    for part in
        ["paused by an operator, on this node", "/s/shop/resume-route", "they move (by local)", "connection refused"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let entries = store.actions(None, 20).await.expect("entries");
    let told: Vec<_> = entries.iter().rev().map(|entry| (&*entry.action, entry.outcome.as_deref())).skip(1).collect();
    assert_eq!(
        told,
        [
            ("probe", Some("done")),
            ("pause", Some("done")),
            ("probe", Some("refused: the route delivers, or is being tried out, or an operator has paused it")),
            ("resume", Some("done")),
            ("resume", Some("refused: no operator has paused the route")),
            ("pause", Some("refused: the route sends nothing")),
            ("pause", Some("done")),
        ]
    );
}

/// The time passes by itself: the database takes 0.8 s to answer each change.
#[tokio::test(start_paused = true)]
async fn a_change_that_has_begun_is_seen_through_though_nobody_waits_for_it() {
    let (memory, broker) = (MemoryStore::new(), MemoryPublisher::new());
    let store = FaultyStore::new(memory.clone());
    let routes = Routes::new().route(Route::to(Arc::new(broker), "orders").named("orders").types(["order.*"]));
    let forwarder = routes.build().expect("valid");
    let source = Source::of_store("shop", Arc::new(store.clone())).routes(forwarder.clone());
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    let token = site.get("/s/shop/pauses").await.field("token").to_owned();
    store.set(Operation::Change, Fault::LateAnswer);
    let entries = async || memory.actions(None, 20).await.expect("entries");
    let moment = async || tokio::time::sleep(Duration::from_millis(1)).await;
    for (before, (action, form, outcome)) in [
        ("pause", "kind=type&name=order.placed", "done"),
        ("resume", "kind=type&name=order.placed", "done"),
        ("probe", "route=orders", "is being tried out"),
        ("pause-route", "route=orders&reason=they+move", "done"),
        ("resume-route", "route=orders", "done"),
    ]
    .into_iter()
    .enumerate()
    {
        let (path, form) = (format!("/s/shop/{action}"), format!("{form}&token={token}"));
        let begun = async {
            while entries().await.len() == before {
                moment().await;
            }
        };
        tokio::select! {
            answer = site.post(&path, &form, &[]) => panic!("{action} has ended: {answer:?}"),
            () = begun => {}
        }
        // The request is gone by now.
        let ended = async {
            while entries().await[0].outcome.is_none() {
                moment().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect(action);
        let entry = entries().await.remove(0);
        assert!(entry.outcome.as_deref().is_some_and(|said| said.contains(outcome)), "{action}: {entry:?}");
    }
    assert_eq!(memory.pauses().await.expect("a list"), []);
    assert!(!matches!(forwarder.status()[0].state, RouteState::PausedByOperator { .. }));
}

#[tokio::test]
async fn more_rows_than_were_confirmed_are_left_alone() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = Site::open(&store);
    let question = site.get("/s/shop/confirm?do=discard").await;
    write_dead(&store, [event("order.paid"), event("order.paid")]).await;
    let form = format!("do=discard&token={}&count={}", question.field("token"), question.field("count"));
    let answer = site.post("/s/shop/act", &form, &[]).await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    assert!(answer.body.contains("There are 3 rows now, and 1 were confirmed"), "{}", answer.body);
    assert_eq!(statuses(&store), [Status::Dead; 3]);
}

#[tokio::test]
async fn a_row_that_is_for_another_event_than_was_confirmed_is_left_alone() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed"), event("order.placed")]).await;
    let site = Site::open(&store);
    let seqs: Vec<i64> = store.inspect().rows().iter().map(|row| row.seq).collect();
    // As if the number had been given again since.
    let question = site.get(&format!("/s/shop/confirm?do=discard&seq={}", seqs[0])).await;
    let (token, event) = (question.field("token"), question.field("row_event"));
    for (seq, row) in [
        (seqs[1], format!("&row_event={event}")),
        (seqs[0], format!("&row_event={event}&row_handler=another")),
        (seqs[0], String::new()),
    ] {
        let answer = site.post("/s/shop/act", &format!("do=discard&seq={seq}&token={token}{row}"), &[]).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
        assert!(answer.body.contains("for another event"), "{}", answer.body);
        assert_eq!(statuses(&store), [Status::Dead; 2]);
    }
    let row = format!("do=discard&seq={}&token={token}&row_event={event}", seqs[0]);
    assert_eq!(site.post("/s/shop/act", &row, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(statuses(&store), [Status::Dead]);
}

#[tokio::test]
async fn nothing_changes_that_cannot_be_recorded() {
    let memory = MemoryStore::new();
    write_dead(&memory, [event("order.placed")]).await;
    let store = FaultyStore::new(memory.clone());
    let source = Source::of_store("shop", Arc::new(store.clone()));
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    let question = site.get("/s/shop/confirm?do=discard").await;
    store.set(Operation::Change, Fault::Refused);
    let form = format!("do=discard&token={}&count=1", question.field("token"));
    let answer = site.post("/s/shop/act", &form, &[]).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    assert_eq!(statuses(&memory), [Status::Dead]);
}
