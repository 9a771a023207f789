//! What is sent, and what the endpoint's answers become.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Endpoint, keyed, message, options, publisher};
use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::event::EventId;
use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Permanent, Temporary, Unavailable};
use pillarbox_core::publisher::{FailureScope, Message, Publisher as _};
use pillarbox_webhook::{WebhookOptions, WebhookPublisher};
use tokio::time::Instant;

#[derive(Debug)]
struct Standing(Timestamp);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        self.0
    }
}

fn standing(micros: i64, options: WebhookOptions) -> WebhookPublisher {
    WebhookPublisher::with_clock(options, Arc::new(Standing(Timestamp::from_micros(micros)))).expect("options")
}

#[tokio::test]
async fn a_request_carries_the_message_and_its_signatures() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    options.url = Some(format!("http://ann:open%20sesame@{}/in?tenant=7", endpoint.address).into());
    options.secrets = vec![
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".into(),
    ];
    let publisher = standing(1_700_000_000_999_999, options);
    let mut message = Message::new(
        "orders/placed",
        EventId::new("01JD2N8Y6T0VQZ5W4B9K3M7XRC").expect("an id"),
        &b"\x00\xff{\"a\":1}\r\n"[..],
    );
    message.content_type = "application/octet-stream".into();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    message.headers = vec![
        ("event-id".into(), "01JD2N8Y6T0VQZ5W4B9K3M7XRC".into()),
        ("traceparent".into(), traceparent.into()),
        ("city".into(), "Zürich 100%".into()),
        ("Host".into(), "evil.example".into()),
        ("authorization".into(), "Bearer evil".into()),
        ("webhook-signature".into(), "v1,evil".into()),
    ];
    assert_eq!(publisher.publish(vec![message]).await, [Ok(None)]);

    let requests = endpoint.requests();
    let [request] = requests.as_slice() else { panic!("one request, not {requests:?}") };
    assert_eq!((request.method.as_str(), request.uri.to_string().as_str()), ("POST", "/in/orders/placed?tenant=7"));
    assert_eq!(&request.body[..], b"\x00\xff{\"a\":1}\r\n");
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("event-id", "01JD2N8Y6T0VQZ5W4B9K3M7XRC"),
        ("webhook-id", "01JD2N8Y6T0VQZ5W4B9K3M7XRC"),
        ("webhook-timestamp", "1700000000"),
        // As Python's hmac and hashlib compute them.
        (
            "webhook-signature",
            "v1,+RK/8Idd7RIBSG10VA0XlRCNrrQZx0scEFg5xhKVNTg= v1,gh5lZCtJr/S1hlKc8qhshPzkIfJz+F1l6gUhbeRj+1Q=",
        ),
        ("traceparent", traceparent),
        ("city", "Z%C3%BCrich 100%25"),
        ("host", &endpoint.address.to_string()),
        ("event-header-host", "evil.example"),
        ("authorization", "Basic YW5uOm9wZW4gc2VzYW1l"),
        ("event-header-authorization", "Bearer evil"),
        ("event-header-webhook-signature", "v1,evil"),
    ] {
        assert_eq!(request.header(name), value, "{name}");
        assert_eq!(request.headers.get_all(name).iter().count(), 1, "{name}");
    }
    let (shown, host) = (&publisher.info().address, format!("http://{}/<", endpoint.address));
    assert!(shown.starts_with(&host) && shown.len() == host.len() + 9, "{shown}");
}

#[tokio::test]
async fn an_event_is_signed_for_its_tenant_or_not_sent() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    let secret = |secret: &str| vec![secret.into()];
    let secrets = [
        ("acme".to_owned(), secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
        ("globex".to_owned(), secret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")),
    ];
    options.secrets_by_tenant = Some(secrets.into_iter().collect());
    let publisher = standing(1_700_000_000_999_999, options);
    let of = |tenant: Option<&str>| {
        let mut message = message(endpoint.url("/ok"), 1);
        message.tenant = tenant.map(Into::into);
        message
    };
    let tenants = [Some("acme"), Some("globex"), Some("initech"), None];
    let receipts = publisher.publish(tenants.map(of).into()).await;
    assert_eq!(receipts[..2], [Ok(None), Ok(None)]);
    for (receipt, expected) in receipts[2..].iter().zip(["tenant `initech` has no secret", "the event has no tenant"]) {
        let error = receipt.as_ref().expect_err("it is not sent unsigned");
        assert_eq!((error.kind(), error.scope()), (Misconfigured, FailureScope::Message), "nobody else waits: {error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let signatures: HashSet<String> =
        endpoint.requests().iter().map(|request| request.header("webhook-signature").to_owned()).collect();
    // As Python's hmac and hashlib compute them.
    let expected =
        ["v1,ttX3Yc2hXxnt3+HG7ifFg0NUA+xQ78ZyM8fUMhdxn5k=", "v1,uilbYB7aXWOFXLk0PAv71VEZfKOARHwTC/kJdx5ygJk="];
    assert_eq!(signatures, expected.map(str::to_owned).into());
}

#[tokio::test]
async fn an_error_says_which_part_of_the_destination_it_concerns() {
    let endpoint = Endpoint::start().await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    let targets =
        |base: &str| [format!("{base}/status/500"), format!("{base}/status/404"), format!("{base}/pause/503/9")];
    let scopes = async |publisher: &WebhookPublisher, targets: &[String]| -> Vec<FailureScope> {
        let messages = targets.iter().map(|target| message(&**target, 0)).collect();
        let receipts = publisher.publish(messages).await;
        receipts.into_iter().map(|receipt| receipt.expect_err("a failure").scope()).collect()
    };
    let free = publisher();
    assert_eq!(scopes(&free, &targets(&endpoint.url(""))).await, [FailureScope::Target; 3]);
    assert_eq!(scopes(&free, &targets(&format!("http://{closed}"))).await, [FailureScope::Server; 3]);
    let below = |url: String| {
        let mut options = options();
        options.url = Some(url.into());
        WebhookPublisher::new(options).expect("options")
    };
    assert_eq!(scopes(&below(endpoint.url("")), &targets("")).await, [FailureScope::Target; 3]);
    assert_eq!(scopes(&below(format!("http://{closed}/")), &targets("")).await, [FailureScope::Broker; 3]);
    let behind = [keyed(endpoint.url("/status/500"), 1, "k"), keyed(endpoint.url("/ok"), 2, "k")];
    let receipts = free.publish(behind.into()).await;
    assert_eq!(receipts[1].as_ref().map_err(|error| error.scope()), Err(FailureScope::Message));
}

/// The endpoint names its time with each answer, as every server does.
#[tokio::test]
async fn a_refusal_is_no_fault_of_a_signed_event_while_the_clocks_differ() {
    let endpoint = Endpoint::start().await;
    let now = pillarbox_core::clock::SystemClock.now();
    let mut signed = options();
    signed.secrets = vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()];
    let ten_minutes = Duration::from_secs(600);
    for (options, time, kind) in [
        (&signed, now, Permanent),
        (&signed, now.plus(ten_minutes), Misconfigured),
        (&signed, now.minus(ten_minutes), Misconfigured),
        (&options(), now.minus(ten_minutes), Permanent),
    ] {
        let publisher = standing(time.as_micros(), options.clone());
        let receipts = publisher.publish(vec![message(endpoint.url("/status/400"), 1)]).await;
        let error = receipts[0].as_ref().expect_err("refused");
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.to_string().contains("clocks"), kind == Misconfigured, "{error}");
    }
}

#[tokio::test]
async fn a_date_to_come_back_at_is_by_the_clock_of_the_endpoint() {
    let endpoint = Endpoint::start().await;
    let now = pillarbox_core::clock::SystemClock.now();
    let since_1970 = Duration::from_micros(now.as_micros().try_into().expect("after 1970"));
    let in_a_minute = std::time::UNIX_EPOCH + since_1970 + Duration::from_secs(60);
    let target = endpoint.url(&format!("/pause/503/{}", httpdate::fmt_http_date(in_a_minute).replace(' ', "_")));
    let a_day_ago = now.minus(Duration::from_secs(24 * 3600));
    let receipts = standing(a_day_ago.as_micros(), options()).publish(vec![message(target, 1)]).await;
    let delay = receipts[0].as_ref().expect_err("refused").delay().expect("a pause");
    assert!((50..=61).contains(&delay.as_secs()), "{delay:?}");
}

#[tokio::test]
async fn a_body_of_nothing_says_so() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    options.url = Some(endpoint.url("/in").into());
    let publisher = standing(0, options);
    let message = Message::new("empty", EventId::new("e-1").expect("an id"), Vec::new());
    assert_eq!(publisher.publish(vec![message]).await, [Ok(None)]);
    let requests = endpoint.requests();
    let [request] = requests.as_slice() else { panic!("one request, not {requests:?}") };
    assert_eq!((request.header("content-length"), request.body.len()), ("0", 0));
}

#[tokio::test]
async fn each_message_of_a_call_is_answered_for_itself() {
    let endpoint = Endpoint::start().await;
    let codes = [200, 500, 404, 204, 422, 302, 401, 202];
    let messages = codes.iter().enumerate().map(|(n, code)| message(endpoint.url(&format!("/status/{code}")), n));
    let receipts = publisher().publish(messages.collect()).await;
    let kinds: Vec<_> = receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect();
    let (bad, later, never) = (Some(Misconfigured), Some(Temporary), Some(Permanent));
    assert_eq!(kinds, [None, later, bad, None, never, bad, bad, None]);
    assert_eq!(endpoint.requests().len(), codes.len());
    let text = |index: usize| receipts[index].as_ref().expect_err("refused").to_string();
    assert!(text(1).contains("answered 500: said 500"), "{}", text(1));
    assert!(text(5).contains("write the URL it leads to: https://other.example/<"), "{}", text(5));
    assert!(!text(5).contains("hunter2"), "{}", text(5));
}

/// Endpoints that debug answer with what they were sent. A user without a password is a key, as with Stripe.
#[tokio::test]
async fn credentials_that_an_answer_repeats_are_hidden() {
    let endpoint = Endpoint::start().await;
    let said = async |user: &str, change: fn(&mut WebhookOptions)| {
        let mut options = options();
        options.url = Some(format!("http://{user}{}/", endpoint.address).into());
        change(&mut options);
        let publisher = WebhookPublisher::new(options).expect("options");
        let receipt = publisher.publish(vec![message("echo", 1)]).await.remove(0);
        let text = receipt.expect_err("it is refused").to_string();
        text.split_once("answered 401: ").map(|(_, said)| said.to_owned()).unwrap_or(text)
    };
    for (user, change, hidden) in [
        ("sk_live_sesame@", (|_| ()) as fn(&mut WebhookOptions), "not for Basic (hidden), which is (hidden):."),
        ("ann:opensesame@", |_| (), "not for Basic (hidden), which is ann:(hidden)."),
        (
            "",
            |options| {
                (options.username, options.password) = (Some("ann".to_owned()), Some("opensesame".into()));
            },
            "not for Basic (hidden), which is ann:(hidden).",
        ),
        ("", |options| options.token = Some("opensesame".into()), "not for Bearer (hidden), which is ."),
    ] {
        let said = said(user, change).await;
        assert!(said.starts_with(hidden), "{said}");
    }
}

#[tokio::test]
async fn a_pause_is_kept_to_within_the_call() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    options.concurrency = 1;
    let publisher = WebhookPublisher::new(options).expect("options");
    let [busy, down] = ["/pause/429/7", "/pause/503/60"].map(|path| endpoint.url(path));
    let messages = vec![
        message(&*busy, 0),
        message(&*down, 1),
        message(&*busy, 2),
        message(&*down, 3),
        message(endpoint.url("/ok"), 4),
    ];
    let receipts = publisher.publish(messages).await;
    let delays: Vec<_> = receipts.iter().map(|receipt| receipt.as_ref().err().map(|e| (e.kind(), e.delay()))).collect();
    let pause = |seconds| Some((Unavailable, Some(Duration::from_secs(seconds))));
    assert_eq!(delays, [pause(7), pause(60), pause(7), pause(60), None]);
    assert_eq!(endpoint.requests().len(), 3, "an endpoint that asked for a pause is not asked again in the call");
}

#[tokio::test]
async fn a_key_stays_in_order_and_waits_behind_a_failure() {
    let endpoint = Endpoint::start().await;
    let [ok, failing] = ["/ok", "/status/500"].map(|path| endpoint.url(path));
    let mut messages = Vec::new();
    for n in 0..300 {
        messages.push(keyed(&*ok, n, ["a", "b", "c"][n % 3]));
    }
    messages.insert(150, keyed(&*failing, 1000, "b"));
    let receipts = publisher().publish(messages).await;

    let mut held_back = 0;
    for (index, receipt) in receipts.iter().enumerate() {
        // Behind the inserted one, message `index` is number `index - 1`.
        let is_of_b = if index < 150 { index % 3 == 1 } else { index == 150 || (index - 1) % 3 == 1 };
        if index < 150 || !is_of_b {
            assert_eq!(*receipt, Ok(None), "{index}");
            continue;
        }
        let error = receipt.as_ref().expect_err("behind the failure");
        let expected = if index == 150 { Temporary } else { Unavailable };
        assert_eq!(error.kind(), expected, "what is not sent counts no attempt");
        if index > 150 {
            held_back += 1;
            assert!(error.to_string().starts_with("not sent, since an earlier message of its key"), "{error}");
        }
    }
    assert_eq!(held_back, 50);
    let requests = endpoint.requests();
    assert_eq!(requests.len(), 301 - held_back, "each is sent once, and none behind the failure");
    for key in 0..3 {
        let ids = requests.iter().filter_map(|request| {
            request.header("webhook-id").strip_prefix("event-").and_then(|id| id.parse::<usize>().ok())
        });
        let ids: Vec<_> = ids.filter(|id| *id < 1000 && id % 3 == key).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}

#[tokio::test]
async fn a_key_goes_on_behind_a_message_that_is_never_taken() {
    let endpoint = Endpoint::start().await;
    let paths = ["/status/400", "/ok", "/status/413", "/ok"];
    let messages = paths.iter().enumerate().map(|(n, path)| keyed(endpoint.url(path), n, "k")).collect();
    let receipts = publisher().publish(messages).await;
    let kinds: Vec<_> = receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect();
    assert_eq!(kinds, [Some(Permanent), None, Some(Permanent), None]);
}

#[tokio::test]
async fn as_many_requests_are_under_way_as_the_option_says() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    options.concurrency = 4;
    let publisher = WebhookPublisher::new(options).expect("options");
    // Each answers when four of them have met, so fewer would never be answered; and more would be seen.
    let messages: Vec<_> = (0..32).map(|n| message(endpoint.url("/meet"), n)).collect();
    assert!(publisher.publish(messages).await.iter().all(Result::is_ok));
    assert_eq!((endpoint.most_at_once(), endpoint.requests().len()), (4, 32));
}

#[tokio::test]
async fn an_answer_without_end_is_read_to_a_bound() {
    let endpoint = Endpoint::start().await;
    let began = Instant::now();
    let messages = ["/huge/200", "/huge/500", "/drip"].map(|path| message(endpoint.url(path), 0));
    let receipts = publisher().publish(messages.into()).await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!((&receipts[0], &receipts[2]), (&Ok(None), &Ok(None)), "the status alone is the confirmation");
    let error = receipts[1].as_ref().expect_err("a failure");
    assert!(error.kind() == Temporary && error.to_string().chars().count() < 300, "{error}");
}

#[tokio::test]
async fn targets_are_checked_before_anything_is_sent() {
    let endpoint = Endpoint::start().await;
    let ok = endpoint.url("/ok");
    publisher().check(&[ok.clone(), endpoint.url("/status/405")]).await.expect("somebody is there");
    assert!(endpoint.requests().iter().all(|request| request.method == "HEAD"), "nothing is published");
    let error = publisher().check(&[ok.clone(), "orders".to_owned()]).await.expect_err("no URL");
    assert!(error.kind() == Misconfigured && error.to_string().contains("is no absolute URL"), "{error}");

    let free = publisher();
    let url = endpoint.url("/hooks/");
    assert_eq!(free.check_prefix(&url).await, Ok(true));
    for prefix in ["", "https://", "https://h", "orders/"] {
        assert_eq!(free.check_prefix(prefix).await, Ok(false), "{prefix} names no server");
    }

    let mut options = options();
    options.url = Some(endpoint.url("/status").into());
    options.token = Some("hunter2".into());
    let authorized = WebhookPublisher::new(options).expect("options");
    let error = authorized.check(&["401".to_owned()]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("401"), "{error}");
    assert!(!error.to_string().contains("hunter2"));
    assert_eq!(
        endpoint.requests().last().map(|request| request.header("authorization").to_owned()),
        Some("Bearer hunter2".to_owned())
    );

    authorized.close().await;
    authorized.close().await;
    assert!(authorized.check(&["200".to_owned()]).await.is_err_and(|error| error.kind() == Unavailable));
    let receipts = authorized.publish(vec![message("200", 1), message("200", 2)]).await;
    assert_eq!(receipts.len(), 2);
    assert!(receipts.into_iter().all(|receipt| receipt.is_err_and(|error| error.kind() == Unavailable)));
}
