use std::collections::HashMap;

use bytes::Bytes;
use pillarbox_core::publisher::{Message, header};

use super::messages::{LONG, assert_once, confirmed, keyed, message};
use super::{Arrived, PublisherHarness};
use crate::run::Outcome;

/// Bodies that text handling, re-encoding or framing would change.
fn hard_bodies() -> [(&'static str, Bytes); 7] {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    [
        ("application/json", Bytes::from_static(b"{ \"b\":1,\"a\" : 1.0,\"a\":2 }\r\n")),
        ("application/json; charset=utf-8", Bytes::from("\"sm\u{f6}rg\u{e5}s \u{1f980}\"")),
        ("application/octet-stream", Bytes::new()),
        ("application/octet-stream", Bytes::from(every_byte)),
        ("application/octet-stream", Bytes::from_static(b"\r\n\r\n+OK\r\n$-1\r\nPING\r\n\0")),
        ("text/plain", Bytes::from_static(b" ")),
        ("application/x-large", Bytes::from(vec![0xAB; 100_000])),
    ]
}

/// Header values that every protocol can carry, and that careless code changes.
const VALUES: [(&str, &str); 6] = [
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("x-empty", ""),
    ("x-many", "a, b;c=\"d\"  e: f=g&h%20i\\j"),
    ("x-text", "sm\u{f6}rg\u{e5}s \u{1f980}"),
    ("x-json", "{\"a\": [1, 2]}"),
    ("event-type", "order.placed"),
];

/// A message arrives as it was sent: body, headers, and the fields that the broker has for the rest.
pub(super) async fn publish_keeps_bytes_headers_and_key<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    for (content_type, body) in hard_bodies() {
        for full in [false, true] {
            // A target for each, so that what arrives is known to be this message whatever has become of its fields.
            let target = broker.target(&link).await?;
            let mut message = if full { keyed(&target, "customer-7/\u{e5}") } else { message(&target) };
            message.content_type = content_type.into();
            message.body = body.clone();
            if full {
                let long = "x".repeat(4000);
                let values = VALUES.into_iter().chain([("x-long", &*long)]);
                message.headers.extend(values.map(|(name, value)| (name.into(), value.to_owned())));
            }
            confirmed(&*publisher, vec![message.clone()]).await?;
            let arrived = broker.arrived(&target, 1).await?;
            let [arrived] = &arrived[..] else { return Err(format!("{} have arrived", arrived.len()).into()) };
            compare::<H>(arrived, &message);
        }
    }
    Ok(())
}

fn compare<H: PublisherHarness>(arrived: &Arrived, message: &Message) {
    // Compared by hand: a failure must not print a hundred kilobytes.
    assert!(arrived.body == message.body, "the body of {} bytes is another", message.body.len());
    if H::CAPABILITIES.headers {
        for (name, value) in &message.headers {
            assert_eq!(arrived.header(name), Some(&**value), "header {name}");
        }
    }
    if H::CAPABILITIES.ids {
        assert_eq!(arrived.id.as_deref(), Some(message.id.as_str()));
    }
    if H::CAPABILITIES.keys {
        assert_eq!(arrived.key.as_deref(), message.key.as_deref());
    }
    if H::CAPABILITIES.content_types {
        assert_eq!(arrived.content_type.as_deref(), Some(&*message.content_type));
    }
}

/// Headers of an event that are spelled almost like the outbox's, or like commands of the broker, do not arrive under such a name;
/// the message and its other headers do.
pub(super) async fn publish_lets_no_header_of_an_event_pass_for_a_reserved_one<H: PublisherHarness>(
    broker: &H,
) -> Outcome {
    const FORGED: &str = "forged";
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let target = broker.target(&link).await?;
    let mut message = keyed(&target, "customer-7");
    let imitations =
        ["Event-ID", "EVENT-TYPE", "Event-Key", "Aggregate-Type", "Aggregate-ID", "Tenant-Id", "Event-time"];
    let names: Vec<&'static str> = imitations.iter().chain(broker.commands()).copied().collect();
    // Before the genuine ones and behind them: which comes first must not matter.
    let forged = names.iter().map(|name| ((*name).into(), FORGED.to_owned()));
    message.headers.splice(0..0, forged.clone().take(4));
    message.headers.extend(forged.skip(4));
    message.headers.push(("region".into(), "eu-1".to_owned()));
    confirmed(&*publisher, vec![message.clone()]).await?;
    let arrived = broker.arrived(&target, 1).await?;
    let [arrived] = &arrived[..] else { return Err(format!("{} have arrived", arrived.len()).into()) };
    let reserved = |name: &str| names.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    let passed: Vec<_> = arrived.headers.iter().filter(|(name, value)| reserved(name) && value == FORGED).collect();
    assert!(passed.is_empty(), "headers of the event have arrived as {passed:?}");
    let ids = arrived.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(header::ID));
    assert_eq!(ids.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), [message.id.as_str()]);
    assert_eq!(arrived.header("region"), Some("eu-1"));
    assert!(arrived.body == message.body, "the body is another");
    if H::CAPABILITIES.content_types {
        assert_eq!(arrived.content_type.as_deref(), Some(&*message.content_type));
    }
    Ok(())
}

/// Five keys through three calls, mixed: each key's messages are in the order in which they were published.
pub(super) async fn publish_keeps_the_order_within_a_key<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let target = broker.target(&link).await?;
    let all: Vec<Message> = (0..600).map(|number| keyed(&target, &format!("key-{}", number % 5))).collect();
    for batch in [&all[..300], &all[300..301], &all[301..]] {
        confirmed(&*publisher, batch.to_vec()).await?;
    }
    let arrived = broker.arrived(&target, all.len()).await?;
    assert_once(&arrived, &all);
    let places: HashMap<&[u8], usize> = arrived.iter().enumerate().map(|(place, one)| (&*one.body, place)).collect();
    for key in 0..5 {
        let own = all.iter().skip(key).step_by(5);
        let places: Vec<Option<&usize>> = own.map(|message| places.get(&*message.body)).collect();
        assert!(places.is_sorted(), "the order of key {key} is {places:?}");
    }
    Ok(())
}
