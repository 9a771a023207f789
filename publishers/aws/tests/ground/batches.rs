//! Batches, and what becomes of their messages.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{Service, arn, options};
use pillarbox_aws::{SnsPublisher, SqsPublisher};
use pillarbox_core::publisher::PublishErrorKind::{self, Misconfigured, Permanent, Temporary, Unavailable};
use pillarbox_core::publisher::{FailureScope, Message, Publisher, Receipt};
use pillarbox_testkit::publishers::{Link as _, Load, Proxy, load_through, message, messages};
use tokio::time::sleep;

fn kinds(receipts: &[Receipt]) -> Vec<Option<PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

fn with(target: &str, name: &'static str, value: &str) -> Message {
    let mut message = message(target);
    message.headers.push((name.into(), value.to_owned()));
    message
}

fn keyed(target: &str, key: &str) -> Message {
    let mut message = message(target);
    message.key = Some(key.into());
    message
}

async fn both() -> [(Service, Box<dyn Publisher>, String); 2] {
    let (sqs, sns) = (Service::start().await, Service::start().await);
    let queue = sqs.make("orders".to_owned());
    let topic = arn(&sns.make("orders".to_owned()));
    let to_sqs = SqsPublisher::new(options(sqs.address.port())).expect("options");
    let to_sns = SnsPublisher::new(options(sns.address.port())).expect("options");
    [(sqs, Box::new(to_sqs), queue), (sns, Box::new(to_sns), topic)]
}

#[tokio::test]
async fn each_message_of_a_batch_is_answered_for_itself() {
    for (service, publisher, target) in both().await {
        let batch = vec![
            message(&target),
            with(&target, "x-fail", "InvalidMessageContents!"),
            with(&target, "x-fail", "InternalError"),
            message(&target),
            with(&target, "x-fail", "RequestThrottled!"),
            with(&target, "x-forgotten", "yes"),
            message(&target),
        ];
        let receipts = publisher.publish(batch).await;
        let expected = [None, Some(Permanent), Some(Temporary), None, Some(Unavailable), Some(Temporary), None];
        assert_eq!(kinds(&receipts), expected, "{receipts:?}");
        let positions = receipts.iter().flatten().flatten();
        assert_eq!(positions.filter(|position| position.starts_with("message-")).count(), 3, "{receipts:?}");
        assert_eq!(service.books().batches, [7]);
    }
}

#[tokio::test]
async fn a_refusal_of_the_whole_batch_is_the_destinations() {
    for (service, publisher, target) in both().await {
        for (status, code, kind) in [
            (400, "ThrottlingException", Unavailable),
            (503, "ServiceUnavailable", Unavailable),
            (500, "InternalFailure", Temporary),
            (403, "AccessDenied", Misconfigured),
        ] {
            service.books().refusals.push_back((status, code));
            assert_eq!(kinds(&publisher.publish(messages(&target, 2)).await), [Some(kind); 2], "{status} {code}");
        }
        assert_eq!(service.books().batches.len(), 4, "nothing is tried again by itself");
    }
}

/// Such a quota is that of each queue.
#[tokio::test]
async fn a_queue_that_is_throttled_is_in_trouble_alone() {
    let service = Service::start().await;
    let queue = service.make("orders.fifo".to_owned());
    let publisher = SqsPublisher::new(options(service.address.port())).expect("options");
    service.books().refusals.push_back((403, "RequestThrottled"));
    let whole = publisher.publish(vec![message(&queue)]).await;
    let entry = publisher.publish(vec![with(&queue, "x-fail", "RequestThrottled!")]).await;
    for receipt in [&whole[0], &entry[0]] {
        let error = receipt.as_ref().expect_err("throttled");
        assert_eq!((error.kind(), error.scope()), (Unavailable, FailureScope::Target), "{error}");
    }
}

/// A code that is not known says nothing about a message: it may be the account that is at fault.
#[tokio::test]
async fn a_refusal_that_nobody_knows_makes_no_event_dead() {
    for (service, publisher, target) in both().await {
        for (status, code, kind) in [(400, "SomethingNew", Temporary), (403, "SomethingNew", Misconfigured)] {
            service.books().refusals.push_back((status, code));
            assert_eq!(kinds(&publisher.publish(messages(&target, 1)).await), [Some(kind)], "{status} {code}");
        }
    }
}

/// One message may make the service refuse all that came with it.
#[tokio::test]
async fn a_spoilt_batch_is_sent_one_by_one() {
    for (service, publisher, target) in both().await {
        service.books().refusals.extend([(400, "InvalidParameterValue"), (400, "InvalidParameterValue")]);
        let receipts = publisher.publish(messages(&target, 3)).await;
        assert_eq!(kinds(&receipts), [Some(Permanent), None, None], "{receipts:?}");
        assert_eq!(service.books().batches, [3, 1, 1, 1]);
    }
}

#[tokio::test]
async fn batches_keep_to_the_limits() {
    for (service, publisher, target) in both().await {
        let large = if target.starts_with("arn:") { 100_000 } else { 400_000 };
        let mut many = messages(&target, 25);
        many.extend(messages(&target, 5).into_iter().map(|mut message| {
            message.body = vec![b'x'; large].into();
            message
        }));
        assert!(publisher.publish(many).await.iter().all(Result::is_ok));
        // The service itself fails the test for a batch that is too large.
        let mut sizes = service.books().batches.clone();
        sizes.sort_unstable();
        assert_eq!(sizes.iter().sum::<usize>(), 30);
        assert_eq!(service.received("orders").len(), 30);
    }
}

#[tokio::test]
async fn a_message_is_as_large_as_the_options_say() {
    let service = Service::start().await;
    let queue = service.make("orders".to_owned());
    for (max_message, expected) in [(None, None), (Some(300_000), Some(Permanent))] {
        let mut options = options(service.address.port());
        options.max_message = max_message;
        let publisher = SqsPublisher::new(options).expect("options");
        let mut large = message(&queue);
        large.body = vec![b'x'; 400_000].into();
        assert_eq!(publisher.refusal(&large, true).map(|error| error.kind()), expected);
        assert_eq!(kinds(&publisher.publish(vec![large]).await), [expected]);
    }
}

#[tokio::test]
async fn fifo_waits_behind_what_was_not_taken() {
    let service = Service::start().await;
    let queue = service.make("orders.fifo".to_owned());
    let publisher = SqsPublisher::new(options(service.address.port())).expect("options");
    let mut failing = keyed(&queue, "a");
    failing.headers.push(("x-fail".into(), "InternalError".to_owned()));
    let batch =
        vec![keyed(&queue, "a"), failing, keyed(&queue, "a"), keyed(&queue, "b"), keyed(&queue, "b"), message(&queue)];
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Temporary), Some(Unavailable), None, None, None], "{receipts:?}");
    let received = service.received("orders.fifo");
    let groups: Vec<_> = received.iter().map(|one| one.group.clone().expect("a group")).collect();
    assert_eq!((groups.len(), groups.iter().filter(|group| *group == "a").count()), (4, 1));
    let ids: Vec<_> = received.iter().map(|one| (one.dedup.clone(), one.attributes.get("event-id").cloned())).collect();
    assert!(ids.iter().all(|(dedup, id)| dedup.is_some() && dedup == id), "{ids:?}");
}

/// Ten thousand events, while the service is cut off and away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_service_comes_and_goes() {
    let service = Service::start().await;
    let proxy = Proxy::to(service.address).await.expect("a port");
    let queue = service.make("orders".to_owned());
    let mut options = options(proxy.port());
    options.timeout = Duration::from_secs(2);
    let publisher = SqsPublisher::new(options).expect("options");
    let disaster = async {
        proxy.cut();
        proxy.refuse().await;
        sleep(Duration::from_millis(500)).await;
        proxy.pass();
        Ok(())
    };
    let confirmed = load_through(&publisher, &queue, Load::default(), disaster).await.expect("all are confirmed");
    let received = service.received("orders");
    let ids = received.iter().filter_map(|one| one.attributes.get("event-id").map(String::as_str));
    let duplicates = confirmed.duplicates_among(ids).expect("none is lost");
    println!("{} failures, {duplicates} duplicates, {:?}", confirmed.failures, confirmed.took);
    assert!(confirmed.failures > 0, "the service was away");
}

#[test]
fn an_authority_that_cannot_be_read_is_refused() {
    let mut wrong = options(1);
    wrong.ca_file = Some("/no/such.pem".into());
    assert!(
        SqsPublisher::new(wrong.clone())
            .expect_err("refused")
            .to_string()
            .contains("`ca_file` names /no/such.pem, which cannot be read")
    );
    wrong.ca_file = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into());
    assert!(SnsPublisher::new(wrong).expect_err("refused").to_string().contains("holds no certificate"));
}
