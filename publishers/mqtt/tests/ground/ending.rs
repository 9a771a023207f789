//! A broker that ends the connection over one message, as brokers do over what they do not like: it loses nothing but this one.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{FailureScope, Message, PublishErrorKind, Publisher as _, Receipt};
use pillarbox_mqtt::{MqttOptions, MqttPublisher};
use pillarbox_testkit::publishers::messages;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use PublishErrorKind::{Misconfigured, Permanent, Temporary, Unavailable};

/// The body of the message that the broker does not like.
const POISON: &[u8] = b"poison";

/// As much of a broker as a publisher needs. Over a message whose body is [`POISON`] it ends the connection.
struct Broker {
    port: u16,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// The reaction of the broker to the message.
#[derive(Clone, Copy)]
enum Over {
    /// It closes the connection without a word.
    Close,
    /// It says a reason first.
    Say(u8),
    /// It closes the connection, and refuses new ones for this long.
    Crash(Duration),
}

impl Broker {
    async fn start(over: Over) -> Result<Self, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (connections, mut task) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        let counter = Arc::clone(&connections);
        task.spawn(async move {
            let mut listener = Some(listener);
            loop {
                let listening = match listener.take() {
                    Some(listening) => listening,
                    None => TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free"),
                };
                let mut serving = JoinSet::new();
                let (crashed, mut crashes) = tokio::sync::mpsc::channel::<()>(1);
                loop {
                    tokio::select! {
                        _ = crashes.recv() => break,
                        accepted = listening.accept() => {
                            let (stream, _) = accepted.expect("accepts");
                            counter.fetch_add(1, Ordering::Relaxed);
                            let crashed = crashed.clone();
                            serving.spawn(async move {
                                if serve(stream, over).await.is_ok_and(|met| met) && matches!(over, Over::Crash(_)) {
                                    crashed.send(()).await.expect("the broker runs");
                                }
                            });
                        }
                    }
                }
                drop((listening, serving));
                if let Over::Crash(away) = over {
                    sleep(away).await;
                }
            }
        });
        Ok(Self { port, connections, _task: task })
    }

    fn publisher(&self) -> Result<MqttPublisher, BoxError> {
        let mut options = MqttOptions::new(format!("mqtt://127.0.0.1:{}", self.port));
        options.timeout = Duration::from_secs(20);
        // The broker makes none up.
        options.client_id = Some("relay".to_owned());
        Ok(MqttPublisher::new(options)?)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Serves one connection until it ends; true if it has ended over the message.
async fn serve(stream: TcpStream, over: Over) -> Result<bool, BoxError> {
    let mut stream = BufStream::new(stream);
    loop {
        let kind = stream.read_u8().await? >> 4;
        let mut length = 0;
        for place in 0.. {
            let byte = stream.read_u8().await?;
            length |= usize::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        let mut packet = vec![0; length];
        stream.read_exact(&mut packet).await?;
        match kind {
            // CONNECT: no session, accepted, no properties.
            1 => stream.write_all(&[0x20, 3, 0, 0, 0]).await?,
            // PUBLISH: the topic, the number of the packet, properties, the body.
            3 if packet.ends_with(POISON) => {
                if let Over::Say(reason) = over {
                    stream.write_all(&[0xE0, 2, reason, 0]).await?;
                    stream.flush().await?;
                }
                return Ok(true);
            }
            3 => {
                let topic = usize::from(u16::from_be_bytes([packet[0], packet[1]]));
                stream.write_all(&[0x40, 2, packet[2 + topic], packet[3 + topic]]).await?;
            }
            // PINGREQ.
            12 => stream.write_all(&[0xD0, 0]).await?,
            _ => return Ok(false),
        }
        stream.flush().await?;
    }
}

fn with_poison_at(count: usize, places: &[usize]) -> Vec<Message> {
    let mut messages = messages("shop", count);
    for place in places {
        messages[*place].body = POISON.into();
    }
    messages
}

fn kinds(receipts: &[Receipt]) -> Vec<Option<PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

/// The kind of each receipt where these places have failed so.
fn but(count: usize, places: &[usize], kind: PublishErrorKind) -> Vec<Option<PublishErrorKind>> {
    (0..count).map(|place| places.contains(&place).then_some(kind)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_over_which_the_broker_ends_the_connection_counts_an_attempt_and_stops_no_other()
-> Result<(), BoxError> {
    let broker = Broker::start(Over::Close).await?;
    let publisher = broker.publisher()?;
    let (receipts, others) =
        tokio::join!(publisher.publish(with_poison_at(300, &[7, 200])), publisher.publish(messages("others", 50)),);
    assert_eq!(kinds(&receipts), but(300, &[7, 200], Temporary), "{:?}", receipts[7]);
    assert_eq!(kinds(&others), [None; 50]);
    let error = receipts[7].as_ref().expect_err("not taken").to_string();
    assert!(error.starts_with("shop: the connection has ended twice"), "{error}");
    assert!(broker.connections() < 20, "{} connections", broker.connections());
    // One alone, as in an outbox with few events.
    assert_eq!(kinds(&publisher.publish(with_poison_at(1, &[0])).await), [Some(Temporary)]);
    assert_eq!(kinds(&publisher.publish(messages("shop", 2000)).await), [None; 2000]);
    Ok(())
}

#[tokio::test]
async fn the_reason_for_which_the_broker_ends_the_connection_is_that_of_its_message_alone() -> Result<(), BoxError> {
    for (reason, kind) in
        [(0x99, Permanent), (0x90, Permanent), (0x95, Permanent), (0x87, Misconfigured), (0x82, Temporary)]
    {
        let broker = Broker::start(Over::Say(reason)).await?;
        let publisher = broker.publisher()?;
        let receipts = publisher.publish(with_poison_at(20, &[11])).await;
        assert_eq!(kinds(&receipts), but(20, &[11], kind), "{reason:#x}: {:?}", receipts[11]);
        let error = receipts[11].as_ref().expect_err("not taken");
        assert_eq!(error.scope() == FailureScope::Target, kind == Misconfigured, "{reason:#x}: {error}");
    }
    Ok(())
}

/// Where the broker leaves, no message is to blame, and it is not connected to again and again. A call may connect once more: while it writes,
/// that the connection is closed can be seen before the reason.
#[tokio::test]
async fn a_broker_that_leaves_blames_no_message() -> Result<(), BoxError> {
    for reason in [0x8B, 0x8E, 0x98] {
        let broker = Broker::start(Over::Say(reason)).await?;
        let publisher = broker.publisher()?;
        for _ in 0..3 {
            let receipts = publisher.publish(with_poison_at(20, &[11])).await;
            let expected = (0..20).map(|place| (place >= 11).then_some(Unavailable));
            assert_eq!(kinds(&receipts), expected.collect::<Vec<_>>(), "{reason:#x}: {:?}", receipts[0]);
        }
        assert!((3..=6).contains(&broker.connections()), "{reason:#x}: {} connections", broker.connections());
    }
    Ok(())
}

/// A broker that dies over the message is away when it should be sent alone; what was learnt outlasts the call.
#[tokio::test]
async fn a_message_over_which_the_broker_dies_is_found_out_over_several_calls() -> Result<(), BoxError> {
    let away = Duration::from_millis(200);
    let broker = Broker::start(Over::Crash(away)).await?;
    let publisher = broker.publisher()?;
    let (mut left, mut calls, mut blamed) = (with_poison_at(20, &[11]), 0, Vec::new());
    while !left.is_empty() {
        calls += 1;
        assert!(calls < 15, "{} are left", left.len());
        let receipts = publisher.publish(left.clone()).await;
        let mut again = Vec::new();
        for (message, receipt) in left.into_iter().zip(receipts) {
            match receipt {
                Ok(_) => {}
                Err(error) if error.kind() == Unavailable => again.push(message),
                Err(error) => blamed.push((message.body, error.kind())),
            }
        }
        left = again;
        sleep(away * 2).await;
    }
    assert_eq!(blamed, [(POISON.into(), Temporary)]);
    Ok(())
}

/// A broker that ends each connection is given up soon, rather than to be connected to once for each message.
#[tokio::test]
async fn a_broker_that_ends_every_connection_is_given_up_soon() -> Result<(), BoxError> {
    let broker = Broker::start(Over::Close).await?;
    let publisher = broker.publisher()?;
    let receipts = publisher.publish(with_poison_at(100, &(0..100).collect::<Vec<_>>())).await;
    let of = |kind| kinds(&receipts).iter().filter(|found| **found == Some(kind)).count();
    assert_eq!((of(Temporary), of(Unavailable)), (3, 97), "{:?}", receipts[0]);
    assert_eq!(broker.connections(), 7);
    Ok(())
}
