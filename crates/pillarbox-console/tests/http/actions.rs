use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use pillarbox_console::{Access, Console, Role, Source};
use pillarbox_core::row::Status;
use pillarbox_core::store::Upkeep as _;
use pillarbox_memory::MemoryStore;
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
    site.post("/s/shop/act", &format!("{asked}&token={token}&count={count}"), &[]).await
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

#[tokio::test]
async fn what_is_asked_for_wrongly_is_refused_and_changes_nothing() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = Site::open(&store);
    let token = site.get("/s/shop/confirm?do=replay").await.field("token").to_owned();
    for (form, part) in [
        (format!("do=destroy&token={token}"), "the form is incomplete"),
        (format!("token={token}"), "the form is incomplete"),
        (format!("do=replay&seq=x&token={token}"), "`seq` is no number"),
        (format!("do=discard&since=yesterday&token={token}"), "`since` is neither an age"),
        (format!("do=cancel&state=dead&token={token}"), "`state` is none of"),
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
