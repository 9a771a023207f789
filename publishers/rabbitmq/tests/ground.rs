//! What is RabbitMQ's own: routing, exchanges that vanish, permissions, full queues, alarms, TLS. One broker serves all tests,
//! since it takes some ten seconds to start; each test has queues of its own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

mod support;

use std::collections::HashSet;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lapin::types::AMQPValue;
use libtest_mimic::{Arguments, Failed, Trial};
use pillarbox_core::error::BoxError;
use pillarbox_core::examine::Judgement;
use pillarbox_core::publisher::{FailureScope, Message, PublishErrorKind, Publisher as _, Receipt};
use pillarbox_rabbitmq::{RabbitMqOptions, RabbitMqPublisher};
use pillarbox_testkit::publishers::{Proxy, Server, message, messages};
use support::Client;
use tokio::runtime::Runtime;

use PublishErrorKind::{Misconfigured, Permanent, Unavailable};

type Outcome = Result<(), BoxError>;

fn kinds(receipts: &[Receipt]) -> Vec<Option<PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

fn publisher(server: &Server) -> Result<RabbitMqPublisher, BoxError> {
    Ok(RabbitMqPublisher::new(support::options(server.address().port()))?)
}

async fn client(server: &Server) -> Result<Client, BoxError> {
    Client::connect(server.address().port()).await
}

fn to(targets: &[&str]) -> Vec<Message> {
    targets.iter().map(|target| message(target)).collect()
}

async fn the_exchange_of_a_target_that_depends_on_the_event_is_asked_for(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.exchange("asked").await?;
    assert_eq!(publisher.check_prefix("asked/order.").await, Ok(true));
    for prefix in ["", "ask", "/queue-"] {
        assert_eq!(publisher.check_prefix(prefix).await, Ok(false), "{prefix} names no exchange");
    }
    let error = publisher.check_prefix("nobody/").await.expect_err("it is missing");
    assert!(error.kind() == Misconfigured && error.to_string().contains("exchange \"nobody\""), "{error}");
    Ok(())
}

/// Among hundreds, so that acknowledgements come for many at once, and the client hands out what came back with others'.
async fn messages_without_a_bound_queue_are_refused_and_nothing_else(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.exchange("routing").await?;
    client.bound("routed", "routing", "order.#").await?;
    client.bound("keyed", "routing", "key-1").await?;
    let batch: Vec<_> =
        (0..600).map(|n| message(if n % 7 == 3 { "routing/nobody" } else { "routing/order.a" })).collect();
    let receipts = publisher.publish(batch).await;
    for (number, receipt) in receipts.iter().enumerate() {
        let expected = (number % 7 == 3).then_some(Misconfigured);
        assert_eq!(receipt.as_ref().err().map(|error| error.kind()), expected, "{number}: {receipt:?}");
    }
    let text = receipts[3].as_ref().expect_err("came back").to_string();
    assert!(text.contains("routing/nobody") && text.contains("no queue is bound"), "{text}");
    assert_eq!(client.drain("routed").await?.len(), receipts.iter().filter(|receipt| receipt.is_ok()).count());

    let mut keyed = message("routing");
    keyed.key = Some("key-1".into());
    assert_eq!(kinds(&publisher.publish(vec![keyed, message("routing")]).await), [None, Some(Misconfigured)]);
    assert_eq!(client.drain("keyed").await?.len(), 1);
    Ok(())
}

async fn a_queue_is_reached_by_its_name(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.queue("by/name", &[]).await?;
    publisher.check(&["/by/name".to_owned()]).await?;
    assert_eq!(kinds(&publisher.publish(to(&["/by/name", "/nobody"])).await), [None, Some(Misconfigured)]);
    let error = publisher.check(&["/nobody".to_owned()]).await.expect_err("missing");
    assert!(error.kind() == Misconfigured && error.to_string().contains("the queue \"nobody\" is missing"), "{error}");
    assert_eq!(client.drain("by/name").await?.len(), 1);
    Ok(())
}

/// The exchange was there, so it is not looked for again, and the broker closes the channel on which much else is under way,
/// of other calls too.
async fn an_exchange_that_vanishes_harms_no_other_message(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    for name in ["vanishing", "staying"] {
        client.exchange(name).await?;
        client.bound(name, name, "#").await?;
    }
    assert_eq!(kinds(&publisher.publish(to(&["vanishing/a", "staying/a"])).await), [None, None]);
    client.delete_exchange("vanishing").await?;
    let mixed: Vec<_> = (0..300).map(|n| message(if n == 150 { "vanishing/a" } else { "staying/a" })).collect();
    let others = messages("staying/a", 300);
    let staying = mixed.iter().chain(&others).filter(|message| &*message.target == "staying/a");
    let staying: Vec<_> = staying.map(|message| message.id.to_string()).collect();
    let (mixed, others) = tokio::join!(publisher.publish(mixed), publisher.publish(others));
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    let refused: Vec<_> = mixed.iter().enumerate().filter(|(_, receipt)| receipt.is_err()).collect();
    assert!(matches!(refused[..], [(150, Err(error))] if error.kind() == Misconfigured), "{refused:?}");
    let arrived: HashSet<_> = client.drain("staying").await?.into_iter().filter_map(|message| message.id).collect();
    let lost: Vec<_> = staying.iter().filter(|id| !arrived.contains(*id)).collect();
    assert!(lost.is_empty(), "confirmed and lost: {lost:?}");
    client.exchange("vanishing").await?;
    client.bound("vanishing", "vanishing", "#").await?;
    assert_eq!(kinds(&publisher.publish(to(&["vanishing/a"])).await), [None], "it is found again");
    Ok(())
}

async fn a_user_without_permission_is_told_and_other_exchanges_go_on(server: &Server) -> Outcome {
    let client = client(server).await?;
    for name in ["allowed", "forbidden"] {
        client.exchange(name).await?;
        client.bound(name, name, "#").await?;
    }
    support::control(server, &["add_user", "relay", "pass"])?;
    support::control(server, &["set_permissions", "relay", "^$", "^allowed$", "^$"])?;
    let mut options = RabbitMqOptions::new(format!("amqp://relay:pass@127.0.0.1:{}", server.address().port()));
    options.timeout = Duration::from_secs(20);
    let publisher = RabbitMqPublisher::new(options)?;
    publisher.check(&["allowed/a".to_owned()]).await?;
    let receipts = publisher.publish(to(&["allowed/a", "forbidden/a", "allowed/a"])).await;
    assert_eq!(kinds(&receipts), [None, Some(Misconfigured), None], "{receipts:?}");
    assert_eq!(client.drain("forbidden").await?.len(), 0);
    Ok(())
}

async fn a_virtual_host_that_is_missing_is_told(server: &Server) -> Outcome {
    let url = format!("amqp://guest:guest@127.0.0.1:{}/nowhere", server.address().port());
    let error = RabbitMqPublisher::new(RabbitMqOptions::new(url))?.check(&[]).await.expect_err("missing");
    assert!(error.kind() == Misconfigured && error.to_string().contains("nowhere"), "{error}");
    Ok(())
}

/// Beyond the broker's limit and within `max_body`.
async fn messages_too_large_for_the_broker_are_refused_and_nothing_else(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.queue("sizes", &[]).await?;
    let mut batch = to(&["/sizes", "/sizes", "/sizes"]);
    batch[1].body = vec![b'x'; 5_000_001].into();
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Permanent), None], "{receipts:?}");
    Ok(())
}

/// One header of a size, and as many short ones as an event may have: each takes six bytes more.
async fn headers_that_do_not_fit_into_a_frame_are_refused_and_nothing_else(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.queue("headers", &[]).await?;
    let mut batch = to(&["/headers", "/headers", "/headers", "/headers"]);
    batch[1].headers = vec![("a".into(), "x".repeat(140_000))];
    batch[2].headers = (0..16_384).map(|n| (format!("{n:04x}").into(), String::new())).collect();
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Permanent), Some(Permanent), None], "{receipts:?}");
    // The most that fits: what is counted is what the protocol takes.
    let mut lengths = (130_500..131_072).rev();
    let fits = loop {
        let length = lengths.next().ok_or("none fits")?;
        let mut batch = to(&["/headers"]);
        batch[0].headers = vec![("a".into(), "x".repeat(length))];
        match kinds(&publisher.publish(batch).await)[..] {
            [None] => break length,
            [Some(Permanent)] => {}
            ref others => return Err(format!("{others:?} with {length} bytes").into()),
        }
    };
    assert!(fits > 130_900, "{fits}");
    assert_eq!(client.drain("headers").await?.len(), 3);
    Ok(())
}

async fn a_full_queue_that_refuses_more_is_unavailable(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    let full =
        [("x-max-length", AMQPValue::LongInt(1)), ("x-overflow", AMQPValue::LongString("reject-publish".into()))];
    client.queue("small", &full).await?;
    assert_eq!(kinds(&publisher.publish(to(&["/small"])).await), [None]);
    for receipt in publisher.publish(to(&["/small", "/small"])).await {
        let error = receipt.expect_err("it is full");
        assert_eq!((error.kind(), error.scope()), (Unavailable, FailureScope::Target), "{error}");
    }
    client.drain("small").await?;
    assert_eq!(kinds(&publisher.publish(to(&["/small"])).await), [None]);
    Ok(())
}

async fn a_queue_that_confirms_nothing_is_in_trouble_alone(server: &Server) -> Outcome {
    let client = client(server).await?;
    for name in ["silent", "well"] {
        client.queue(name, &[]).await?;
    }
    let tell = |what: &str| {
        let found = "{ok, Queue} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"silent\">>))";
        support::control(server, &["eval", &format!("{found}, sys:{what}(amqqueue:get_pid(Queue)).")])
    };
    tell("suspend")?;
    let published = beside_a_silent_queue(server).await;
    tell("resume")?;
    published?;
    assert_eq!(client.drain("well").await?.len(), 4);
    Ok(())
}

async fn beside_a_silent_queue(server: &Server) -> Outcome {
    let proxy = Proxy::to(server.address()).await?;
    let mut options = support::options(proxy.port());
    options.timeout = Duration::from_secs(4);
    let publisher = RabbitMqPublisher::new(options)?;
    let publish = async |targets: &[&str]| {
        let receipts = publisher.publish(to(targets)).await;
        let trouble = |receipt: &Receipt| receipt.as_ref().err().map(|error| (error.kind(), error.scope()));
        receipts.iter().map(trouble).collect::<Vec<_>>()
    };
    let silent = Some((Unavailable, FailureScope::Target));
    assert_eq!(publish(&["/well", "/silent", "/well"]).await, [None, silent, None]);
    // Alone on its channel, while those of another call are confirmed.
    let (alone, other) = tokio::join!(publish(&["/silent"]), publish(&["/well"]));
    assert_eq!((alone, other), (vec![silent], vec![None]));
    // Another one came back, and it is not known which.
    let (unknown, back) = (Some((Unavailable, FailureScope::Message)), Some((Misconfigured, FailureScope::Target)));
    assert_eq!(publish(&["/well", "/silent", "/nobody"]).await, [unknown, silent, back]);
    assert_eq!(proxy.accepted(), 1, "the connection is well");
    // Where nothing else is confirmed, it may be the broker that hangs.
    assert_eq!(publish(&["/silent"]).await, [Some((Unavailable, FailureScope::Broker))]);
    Ok(())
}

async fn a_broker_short_of_memory_is_unavailable_until_it_has_some(server: &Server) -> Outcome {
    let client = client(server).await?;
    client.queue("alarmed", &[]).await?;
    let mut options = support::options(server.address().port());
    options.timeout = Duration::from_secs(2);
    let publisher = RabbitMqPublisher::new(options)?;
    assert_eq!(kinds(&publisher.publish(to(&["/alarmed"])).await), [None]);
    support::control(server, &["set_vm_memory_high_watermark", "0"])?;
    let receipts = publisher.publish(to(&["/alarmed"])).await;
    let again = publisher.publish(to(&["/alarmed"])).await;
    support::control(server, &["set_vm_memory_high_watermark", "0.8"])?;
    for receipts in [receipts, again] {
        assert_eq!(kinds(&receipts), [Some(Unavailable)]);
        assert!(receipts[0].as_ref().is_err_and(|error| error.to_string().contains("short of memory")), "{receipts:?}");
    }
    for attempt in 0.. {
        let receipts = publisher.publish(to(&["/alarmed"])).await;
        if receipts[0].is_ok() {
            break;
        }
        assert!(attempt < 20, "{receipts:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn a_certificate_is_verified_with_its_name(server: &Server) -> Outcome {
    client(server).await?.queue("secured", &[]).await?;
    let (port, trusted) = support::tls(server)?;
    let with = |host: &str, ca_file| {
        let mut options = RabbitMqOptions::new(format!("amqps://guest:guest@{host}:{port}"));
        options.ca_file = ca_file;
        RabbitMqPublisher::new(options)
    };
    let publisher = with("localhost", Some(trusted.clone()))?;
    publisher.check(&["/secured".to_owned()]).await?;
    assert_eq!(kinds(&publisher.publish(to(&["/secured"])).await), [None]);
    let (stranger, misnamed) = (with("localhost", None)?, with("127.0.0.1", Some(trusted))?);
    for untrusted in [stranger, misnamed] {
        let error = untrusted.check(&[]).await.expect_err("not trusted");
        assert_eq!(error.kind(), Misconfigured, "{error}");
    }
    let missing = with("localhost", Some("/no/such.pem".into())).expect_err("is not there");
    assert!(missing.to_string().contains("/no/such.pem"), "{missing}");
    Ok(())
}

async fn queues_that_may_lose_messages_are_found(server: &Server) -> Outcome {
    let (publisher, client) = (publisher(server)?, client(server).await?);
    client.queue("examined-classic", &[]).await?;
    client.queue("examined-quorum", &[("x-queue-type", AMQPValue::LongString("quorum".into()))]).await?;
    client.queue("examined-stream", &[("x-queue-type", AMQPValue::LongString("stream".into()))]).await?;
    client.transient("examined-transient").await?;
    client.exchange("examined").await?;
    let examine = async |targets: &[&str]| {
        let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
        let results = publisher.examine(&targets).await;
        let of = |code: &str| {
            results.iter().find(|checked| checked.check.code == code).expect("it is looked for").judgement.clone()
        };
        (of("rabbitmq-queue-classic"), of("rabbitmq-queue-transient"))
    };
    let both = examine(&["/examined-quorum", "/examined-stream"]).await;
    assert_eq!(both, (Judgement::Healthy, Judgement::Healthy));
    let (classic, transient) = examine(&["/examined-quorum", "/examined-classic"]).await;
    assert!(
        matches!(&classic, Judgement::Found { evidence, .. } if evidence.contains("queue examined-classic")),
        "{classic:?}"
    );
    assert_eq!(transient, Judgement::Healthy);
    let (_, transient) = examine(&["/examined-transient"]).await;
    assert!(
        matches!(&transient, Judgement::Found { evidence, .. } if evidence.contains("examined-transient")),
        "{transient:?}"
    );
    let (classic, _) = examine(&["examined/order.placed"]).await;
    assert!(
        matches!(&classic, Judgement::NotChecked { reason } if reason.contains("exchange examined")),
        "{classic:?}"
    );
    let (classic, _) = examine(&[]).await;
    assert!(
        matches!(&classic, Judgement::NotChecked { reason } if reason.contains("depends on the event")),
        "{classic:?}"
    );
    let (missing, _) = examine(&["/examined-missing"]).await;
    assert!(matches!(missing, Judgement::NotChecked { .. }), "{missing:?}");
    assert!(publisher.check(&["/examined-missing".to_owned()]).await.is_err(), "the question has created no queue");
    Ok(())
}

type Test = for<'a> fn(&'a Server) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

macro_rules! tests {
    ($($name:ident),* $(,)?) => { vec![$((stringify!($name), (|server| Box::pin($name(server))) as Test)),*] };
}

fn main() -> Result<ExitCode, BoxError> {
    let arguments = Arguments::from_args();
    let tests = tests![
        messages_without_a_bound_queue_are_refused_and_nothing_else,
        the_exchange_of_a_target_that_depends_on_the_event_is_asked_for,
        a_queue_is_reached_by_its_name,
        an_exchange_that_vanishes_harms_no_other_message,
        a_user_without_permission_is_told_and_other_exchanges_go_on,
        a_virtual_host_that_is_missing_is_told,
        messages_too_large_for_the_broker_are_refused_and_nothing_else,
        headers_that_do_not_fit_into_a_frame_are_refused_and_nothing_else,
        a_full_queue_that_refuses_more_is_unavailable,
        a_queue_that_confirms_nothing_is_in_trouble_alone,
        a_broker_short_of_memory_is_unavailable_until_it_has_some,
        a_certificate_is_verified_with_its_name,
        queues_that_may_lose_messages_are_found,
    ];
    let runtime = Arc::new(Runtime::new()?);
    let server = if arguments.list { None } else { Some(Arc::new(runtime.block_on(support::start())?)) };
    let trial = |(name, test): (&str, Test)| {
        let (runtime, server) = (Arc::clone(&runtime), server.clone());
        Trial::test(name, move || {
            let server = server.ok_or("there is no broker")?;
            runtime.block_on(test(&server)).map_err(|error| Failed::from(error.to_string()))
        })
    };
    // One after the other: the alarm of one would stop the others.
    let arguments = Arguments { test_threads: Some(1), ..arguments };
    Ok(libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect()).exit_code())
}
