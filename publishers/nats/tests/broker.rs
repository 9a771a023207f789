//! What only a NATS server can do: duplicates, limits, permissions, TLS, a restart under load.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Permanent, Unavailable};
use pillarbox_core::publisher::{FailureScope, Message, PublishErrorKind, Publisher as _, Receipt};
use pillarbox_nats::{NatsOptions, NatsPublisher};
use pillarbox_testkit::publishers::{Load, Proxy, Server, load_through, message, messages};
use support::{PASSWORD, USER, client, start, start_as, start_with, stored, stream};
use tokio::time::Instant;

type Outcome = Result<(), BoxError>;

fn options(server: &Server) -> NatsOptions {
    NatsOptions::new(format!("nats://{USER}:{PASSWORD}@{}", server.address()))
}

fn publisher(options: NatsOptions) -> Result<NatsPublisher, BoxError> {
    Ok(NatsPublisher::new(options)?)
}

fn kind(receipt: &Receipt) -> Option<PublishErrorKind> {
    receipt.as_ref().err().map(|error| error.kind())
}

fn text(receipt: &Receipt) -> String {
    receipt.as_ref().err().map(ToString::to_string).unwrap_or_default()
}

async fn publish_one(publisher: &NatsPublisher, message: Message) -> Receipt {
    publisher.publish(vec![message]).await.remove(0)
}

/// Nothing that was confirmed is lost, and what is stored twice was published again by the load itself.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_events_survive_a_server_that_is_killed() -> Outcome {
    let mut server = start().await?;
    stream(&client(&server).await?, "ORDERS", &["orders.>"]).await?;
    let publisher = publisher(options(&server))?;
    let disaster = async {
        for _ in 0..3 {
            server.kill().await?;
            server.restart().await?;
        }
        Ok(())
    };
    let confirmed = load_through(&publisher, "orders.placed", Load::default(), disaster).await?;
    assert!(confirmed.failures > 0, "the server was away, and nobody has noticed");
    let arrived = stored(&client(&server).await?, "ORDERS", confirmed.ids.len()).await?;
    let ids = arrived.iter().map(|message| message.header("event-id").expect("every message has its id"));
    let duplicates = confirmed.duplicates_among(ids)?;
    // Shown with --nocapture.
    println!("{:?}, {duplicates} duplicates; not confirmed at first: {:?}", confirmed.took, confirmed.problems);
    assert_eq!(duplicates, 0, "the stream remembers what it has stored across a restart");
    Ok(())
}

#[tokio::test]
async fn a_message_is_where_its_receipt_says_and_a_duplicate_where_the_first_is() -> Outcome {
    let server = start().await?;
    let client = client(&server).await?;
    stream(&client, "ORDERS", &["orders"]).await?;
    let publisher = publisher(options(&server))?;
    let messages = messages("orders", 20);
    let receipts = publisher.publish(messages.clone()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let orders = client.get_stream("ORDERS").await?;
    for (message, position) in messages.iter().zip(&receipts) {
        let position = position.as_deref().and_then(|position| position.strip_prefix("ORDERS/"));
        let stored = orders.get_raw_message(position.ok_or("no place in the stream")?.parse()?).await?;
        assert_eq!(stored.payload, message.body);
    }
    assert_eq!(publish_one(&publisher, messages[6].clone()).await?, receipts[6]);
    Ok(())
}

#[tokio::test]
async fn a_duplicate_within_the_window_is_dropped_and_after_it_is_not() -> Outcome {
    let server = start().await?;
    let client = client(&server).await?;
    let window = Duration::from_millis(500);
    let subjects = vec!["orders".to_owned()];
    let config = Config { name: "ORDERS".to_owned(), subjects, duplicate_window: window, ..Default::default() };
    client.create_stream(config).await?;
    let publisher = publisher(options(&server))?;
    let event = message("orders");
    for _ in 0..3 {
        publish_one(&publisher, event.clone()).await?;
    }
    assert_eq!(stored(&client, "ORDERS", 1).await?.len(), 1, "dropped by the stream");
    // The server forgets ids when it has the time to, and tells nobody.
    let began = Instant::now();
    while stored(&client, "ORDERS", 1).await?.len() == 1 {
        assert!(began.elapsed() < Duration::from_secs(20), "the window does not end");
        publish_one(&publisher, event.clone()).await?;
        tokio::time::sleep(window * 2).await;
    }
    Ok(())
}

/// A stream looks at the id alone: with the event's id as the message's, the second would be confirmed and dropped.
#[tokio::test]
async fn an_event_for_two_subjects_of_one_stream_arrives_at_both() -> Outcome {
    let server = start().await?;
    let client = client(&server).await?;
    stream(&client, "ORDERS", &["orders", "audit"]).await?;
    let publisher = publisher(options(&server))?;
    let (order, mut audit) = (message("orders"), message("audit"));
    audit.id = order.id.clone();
    for _ in 0..2 {
        for receipt in publisher.publish(vec![order.clone(), audit.clone()]).await {
            receipt?;
        }
    }
    assert_eq!(stored(&client, "ORDERS", 2).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn limits_are_the_servers_or_the_streams_and_named() -> Outcome {
    let server =
        start_with(&format!("max_payload: 2000\nauthorization {{ user: {USER}, password: \"{PASSWORD}\" }}")).await?;
    let client = client(&server).await?;
    let config = |name: &str| Config { name: name.to_owned(), subjects: vec![name.to_owned()], ..Default::default() };
    client.create_stream(Config { max_message_size: 500, ..config("small") }).await?;
    client.create_stream(Config { max_messages: 2, discard: DiscardPolicy::New, ..config("full") }).await?;
    let publisher = publisher(options(&server))?;

    let mut large = message("small");
    large.body = vec![b'x'; 2000].into();
    let receipt = publish_one(&publisher, large).await;
    assert_eq!(kind(&receipt), Some(Permanent), "{receipt:?}");
    assert!(text(&receipt).contains("limit of 2000 exceeded by message size of 2"), "{receipt:?}");

    let mut medium = message("small");
    medium.body = vec![b'x'; 600].into();
    let receipt = publish_one(&publisher, medium).await;
    assert_eq!(kind(&receipt), Some(Permanent), "{receipt:?}");
    assert!(text(&receipt).contains("exceeds maximum"), "{receipt:?}");

    let receipts = publisher.publish(messages("full", 4)).await;
    let kinds: Vec<_> = receipts.iter().map(kind).collect();
    assert_eq!(kinds, [None, None, Some(Unavailable), Some(Unavailable)], "{receipts:?}");
    assert!(text(&receipts[2]).contains("maximum messages exceeded"), "{receipts:?}");
    Ok(())
}

#[tokio::test]
async fn a_subject_without_a_stream_is_told_how_to_get_one() -> Outcome {
    let server = start().await?;
    let publisher = publisher(options(&server))?;
    for error in [
        publisher.check(&["orders.placed".to_owned()]).await.expect_err("refused"),
        publish_one(&publisher, message("orders.placed")).await.expect_err("refused"),
    ] {
        assert_eq!(error.kind(), Misconfigured);
        assert!(error.to_string().contains("nats stream add NAME --subjects 'orders.placed'"), "{error}");
    }
    // Made meanwhile, it is found at once.
    stream(&client(&server).await?, "ORDERS", &["orders.>"]).await?;
    publisher.check(&["orders.placed".to_owned()]).await?;
    publish_one(&publisher, message("orders.placed")).await?;
    Ok(())
}

/// A program that happens to listen on the subject and replies confirms nothing.
#[tokio::test]
async fn a_reply_that_is_no_streams_is_no_confirmation() -> Outcome {
    use futures_util::StreamExt as _;
    let server = start().await?;
    let stranger = client(&server).await?.client();
    let mut heard = stranger.subscribe("orders").await?;
    stranger.flush().await?;
    let replies = [
        ("+OK", Misconfigured, "is no stream"),
        ("{}", Misconfigured, "is no stream"),
        ("{\"stream\":\"\",\"seq\":1}", Misconfigured, "is no stream"),
        ("", Misconfigured, "is no stream"),
        ("{\"stream\":\"S\",\"seq\":0,\"duplicate\":true}", Unavailable, "has not stored it"),
    ];
    let replying = async {
        for (reply, ..) in replies {
            let message = heard.next().await.ok_or("nobody publishes")?;
            stranger.publish(message.reply.ok_or("no reply is wanted")?, reply.into()).await?;
        }
        Ok::<_, BoxError>(())
    };
    let publisher = publisher(options(&server))?;
    let publishing = async {
        for (reply, expected, said) in replies {
            let receipt = publish_one(&publisher, message("orders")).await;
            assert_eq!(kind(&receipt), Some(expected), "{reply}: {receipt:?}");
            assert!(text(&receipt).contains(said), "{reply}: {receipt:?}");
        }
        Ok::<_, BoxError>(())
    };
    tokio::try_join!(replying, publishing)?;
    Ok(())
}

/// A program that listens and says nothing keeps the server from answering for the subject.
#[tokio::test]
async fn a_subject_that_is_never_confirmed_is_in_trouble_alone() -> Outcome {
    let server = start().await?;
    stream(&client(&server).await?, "ORDERS", &["orders"]).await?;
    let stranger = client(&server).await?.client();
    let _heard = stranger.subscribe("silent").await?;
    stranger.flush().await?;
    let proxy = Proxy::to(server.address()).await?;
    let mut options = NatsOptions::new(format!("nats://{USER}:{PASSWORD}@127.0.0.1:{}", proxy.port()));
    options.timeout = Duration::from_secs(8);
    let publisher = publisher(options)?;
    let trouble = |receipt: &Receipt| receipt.as_ref().err().map(|error| (error.kind(), error.scope()));
    let alone = Some((Unavailable, FailureScope::Target));

    // Silent ones among more than are sent together, the last of the first portion among them.
    let silent = [0, 500, 1023, 1100];
    let mixed = (0..1500).map(|place| message(if silent.contains(&place) { "silent" } else { "orders" }));
    let receipts = publisher.publish(mixed.collect()).await;
    assert_eq!(receipts.len(), 1500);
    for (place, receipt) in receipts.iter().enumerate() {
        let expected = if silent.contains(&place) { alone } else { None };
        assert_eq!(trouble(receipt), expected, "{place}: {receipt:?}");
    }
    let began = Instant::now();
    let receipts = publisher.publish(vec![message("silent"), message("orders"), message("silent")]).await;
    assert_eq!(receipts.iter().map(trouble).collect::<Vec<_>>(), [alone, None, alone], "{receipts:?}");
    assert!(began.elapsed() < Duration::from_secs(7), "the others waited for the limit: {:?}", began.elapsed());

    let (silent, order) =
        tokio::join!(publish_one(&publisher, message("silent")), publish_one(&publisher, message("orders")));
    assert_eq!((trouble(&silent), trouble(&order)), (alone, None), "others are confirmed by another call");
    assert_eq!(proxy.accepted(), 1, "the connection is well");
    // Where nothing else is confirmed, it may be the server that hangs.
    let silent = publish_one(&publisher, message("silent")).await;
    assert_eq!(trouble(&silent), Some((Unavailable, FailureScope::Broker)), "{silent:?}");
    Ok(())
}

#[tokio::test]
async fn another_stream_than_expected_refuses() -> Outcome {
    let server = start().await?;
    stream(&client(&server).await?, "ORDERS", &["orders"]).await?;
    let mut options = options(&server);
    options.expected_stream = Some("BILLING".to_owned());
    let wrong = publisher(options.clone())?;
    let error = wrong.check(&["orders".to_owned()]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("`ORDERS`"), "{error}");
    assert_eq!(kind(&publish_one(&wrong, message("orders")).await), Some(Misconfigured));
    options.expected_stream = Some("ORDERS".to_owned());
    let right = publisher(options)?;
    right.check(&["orders".to_owned()]).await?;
    publish_one(&right, message("orders")).await?;
    Ok(())
}

#[tokio::test]
async fn the_constant_beginning_of_a_subject_is_asked_for() -> Outcome {
    let server = start().await?;
    let own = publisher(options(&server))?;
    let error = own.check_prefix("").await.expect_err("there is no stream at all");
    assert!(error.kind() == Misconfigured && error.to_string().contains("no stream takes the subject `>`"), "{error}");
    stream(&client(&server).await?, "ORDERS", &["orders.>"]).await?;
    for prefix in ["", "orders.", "orders.placed."] {
        assert_eq!(own.check_prefix(prefix).await, Ok(true), "{prefix}");
    }
    let error = own.check_prefix("stock.").await.expect_err("no stream has it");
    assert!(error.kind() == Misconfigured && error.to_string().contains("`stock.>`"), "{error}");
    let mut options = options(&server);
    options.expected_stream = Some("STOCK".to_owned());
    assert_eq!(publisher(options)?.check_prefix("orders.").await, Ok(false), "another stream may have the subject");
    Ok(())
}

#[tokio::test]
async fn a_server_without_jetstream_is_told_to_enable_it() -> Outcome {
    let server = start_as(format!("authorization {{ user: {USER}, password: \"{PASSWORD}\" }}")).await?;
    let publisher = publisher(options(&server))?;
    for targets in [&[][..], &["orders".to_owned()]] {
        let error = publisher.check(targets).await.expect_err("refused");
        assert!(error.kind() == Misconfigured && error.to_string().contains("`--jetstream`"), "{error}");
    }
    assert_eq!(kind(&publish_one(&publisher, message("orders")).await), Some(Misconfigured));
    Ok(())
}

/// The server answers such a message by an error beside the connection; the others of the call are confirmed meanwhile, long
/// before the limit.
#[tokio::test]
async fn a_subject_that_is_not_permitted_is_refused_at_once_and_alone() -> Outcome {
    let server = start_with(&format!(
        r#"authorization {{ users: [
            {{ user: {USER}, password: "{PASSWORD}" }},
            {{ user: narrow, password: "narrow", permissions: {{ publish: ["orders"], subscribe: ["_INBOX.>"] }} }},
            {{ user: deaf, password: "deaf", permissions: {{ publish: ["orders"], subscribe: ["_MINE.>"] }} }}
        ] }}"#
    ))
    .await?;
    let client = client(&server).await?;
    stream(&client, "ORDERS", &["orders", "billing"]).await?;
    let began = Instant::now();
    let as_user = |user: &str| NatsOptions::new(format!("nats://{user}:{user}@{}", server.address()));

    let narrow = publisher(as_user("narrow"))?;
    narrow.check(&["orders".to_owned()]).await?;
    // The server escapes quotes, backslashes and what cannot be printed where it names a subject.
    for denied in ["billing", "billing", "a\"b\\c\u{ad}"] {
        let receipts = narrow.publish(vec![message("orders"), message(denied), message("orders")]).await;
        assert_eq!(receipts.iter().map(kind).collect::<Vec<_>>(), [None, Some(Misconfigured), None], "{receipts:?}");
        assert!(text(&receipts[1]).contains(&format!("`{denied}`")), "{receipts:?}");
    }

    let deaf = publisher(as_user("deaf"))?;
    let receipt = publish_one(&deaf, message("orders")).await;
    assert!(kind(&receipt) == Some(Misconfigured) && text(&receipt).contains("`inbox_prefix`"), "{receipt:?}");
    assert_eq!(deaf.check(&[]).await.map_err(|error| error.kind()), Err(Misconfigured));
    let mut options = as_user("deaf");
    options.inbox_prefix = Some("_MINE".to_owned());
    publish_one(&publisher(options)?, message("orders")).await?;
    assert!(began.elapsed() < Duration::from_secs(8), "it waited for the limit: {:?}", began.elapsed());
    Ok(())
}

#[tokio::test]
async fn each_way_to_say_who_one_is_works_and_a_wrong_one_is_named() -> Outcome {
    let token = start_with("authorization { token: \"t0ken-right\" }").await?;
    let url = format!("nats://{}", token.address());
    let mut options = NatsOptions::new(&*url);
    options.token = Some("t0ken-right".into());
    publisher(options.clone())?.check(&[]).await?;
    publisher(NatsOptions::new(format!("nats://t0ken-right@{}", token.address())))?.check(&[]).await?;
    options.token = Some("t0ken-wrong".into());
    let error = publisher(options)?.check(&[]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("the token"), "{error}");
    assert!(!error.to_string().contains("t0ken"), "{error}");
    let error = publisher(NatsOptions::new(&*url))?.check(&[]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("`credentials_file`"), "{error}");
    let mut options = NatsOptions::new(&*url);
    options.credentials_file = Some("/no/such.creds".into());
    let error = publisher(options)?.check(&[]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("/no/such.creds"), "{error}");

    // An NKey that was made for this test.
    let (seed, public) = NKEY;
    let nkey = start_with(&format!("authorization {{ users: [ {{ nkey: {public} }} ] }}")).await?;
    let mut options = NatsOptions::new(format!("nats://{}", nkey.address()));
    options.nkey = Some(seed.into());
    publisher(options.clone())?.check(&[]).await?;
    options.nkey = Some("SUANOTHING".into());
    let error = publisher(options)?.check(&[]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("`nkey`"), "{error}");
    Ok(())
}

const NKEY: (&str, &str) = (
    "SUADYBOWU5SQFHUJVSPG4T7S6FCD4Z4BVHEJ5RDWM3NEEPSYE7ZASY4KEA",
    "UCB7M4FX6OUY6ZRSRPPPLOIXA3EA5TPX7ME3UANWDWR6WPNCFVD6I6PV",
);

#[tokio::test]
async fn tls_is_verified_by_chain_and_by_name() -> Outcome {
    let directory = tempfile::tempdir()?;
    support::certificates(directory.path())?;
    let pem = |name: &str| directory.path().join(name);
    let server = start_with(&format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}",
        pem("cert.pem").display(),
        pem("key.pem").display()
    ))
    .await?;
    let port = server.place().port;
    let check = async |url: String, ca_file: Option<&Path>| {
        let mut options = NatsOptions::new(url);
        options.ca_file = ca_file.map(Path::to_owned);
        publisher(options).expect("options").check(&[]).await
    };
    let ca = pem("ca.pem");
    check(format!("tls://localhost:{port}"), Some(&ca)).await?;
    // This server asks for TLS whatever the address says.
    check(format!("nats://localhost:{port}"), Some(&ca)).await?;
    for (url, ca_file) in [
        (format!("tls://localhost:{port}"), None),
        (format!("nats://localhost:{port}"), None),
        (format!("tls://127.0.0.1:{port}"), Some(&*ca)),
    ] {
        let error = check(url.clone(), ca_file).await.expect_err("refused");
        assert_eq!(error.kind(), Misconfigured, "{url}: {error}");
        assert!(error.to_string().contains("`ca_file`"), "{url}: {error}");
    }
    // And a server without TLS is not talked to where TLS was asked for.
    let plain = start().await?;
    let error = check(format!("tls://{USER}:{PASSWORD}@localhost:{}", plain.place().port), Some(&ca)).await;
    assert!(error.is_err(), "the password went out in the clear");
    Ok(())
}

#[tokio::test]
async fn the_second_server_is_taken_when_the_first_is_away() -> Outcome {
    let server = start().await?;
    stream(&client(&server).await?, "ORDERS", &["orders"]).await?;
    let login = format!("{USER}:{PASSWORD}");
    let url = format!("nats://{login}@127.0.0.1:1,nats://{login}@{}", server.address());
    let publisher = publisher(NatsOptions::new(url))?;
    publisher.check(&["orders".to_owned()]).await?;
    publish_one(&publisher, message("orders")).await?;
    assert_eq!(publisher.info().address, format!("nats://127.0.0.1:1,nats://{}", server.address()));
    Ok(())
}

/// Many callers that find no connection make one together.
#[tokio::test(flavor = "multi_thread")]
async fn callers_share_one_attempt_to_connect() -> Outcome {
    use pillarbox_testkit::publishers::Link as _;
    let server = start().await?;
    stream(&client(&server).await?, "ORDERS", &["orders"]).await?;
    let proxy = Proxy::to(server.address()).await?;
    let mut options = NatsOptions::new(format!("nats://{USER}:{PASSWORD}@127.0.0.1:{}", proxy.port()));
    options.timeout = Duration::from_secs(1);
    let publisher = publisher(options)?;
    let all = || futures_util::future::join_all((0..50).map(|_| publish_one(&publisher, message("orders"))));
    assert!(all().await.iter().all(Result::is_ok));
    assert_eq!(proxy.accepted(), 1);
    proxy.stall();
    proxy.cut();
    proxy.stall();
    let began = Instant::now();
    let receipts = all().await;
    assert!(receipts.iter().all(|receipt| kind(receipt) == Some(Unavailable)), "{receipts:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(proxy.accepted() <= 3, "{} connections were tried for 50 callers", proxy.accepted());
    Ok(())
}
