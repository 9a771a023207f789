//! Events in the format of their type: written as it says, kept as written, read by the same.
#![cfg(all(feature = "macros", feature = "prost"))]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt::Debug;
use std::time::Duration;

use pillarbox::error::{BoxError, WriteError};
use pillarbox::event::{Codec, Decode, Encode, Payload};
use pillarbox::handle::{HandlerError, on_batch};
use pillarbox::maintain::Status;
use pillarbox::memory::MemoryStore;
use pillarbox::{Delivery, Envelope, Event, Outbox};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "note.json", codec = json)]
struct Note {
    text: String,
    stars: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message, Event)]
#[event(name = "note.proto", codec = prost, key = text)]
struct ProtoNote {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(int64, optional, tag = "2")]
    stars: Option<i64>,
    #[prost(bytes = "vec", tag = "3")]
    picture: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Event)]
#[event(name = "picture", codec = raw, content_type = "image/png")]
struct Picture(Vec<u8>);

impl AsRef<[u8]> for Picture {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Picture {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// A codec of one's own: decimal digits, of even numbers only.
struct EvenDigits;

impl Codec for EvenDigits {
    const CONTENT_TYPE: &'static str = "text/x-digits";
}

#[derive(Debug, Clone, PartialEq, Event)]
#[event(name = "counted", aggregate = "counter", codec = EvenDigits)]
struct Counted(u64);

impl Encode<Counted> for EvenDigits {
    fn encode(Counted(number): &Counted) -> Result<Vec<u8>, BoxError> {
        if number % 2 == 0 { Ok(number.to_string().into_bytes()) } else { Err("an odd number".into()) }
    }
}

impl Decode<Counted> for EvenDigits {
    fn decode(payload: &[u8]) -> Result<Counted, BoxError> {
        Ok(Counted(std::str::from_utf8(payload)?.parse()?))
    }
}

async fn ended(outbox: &Outbox, events: u64) {
    let ended = async {
        while outbox.stats().done + outbox.stats().dead < events {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("all events end");
}

/// Writes events, and returns what a typed handler is given, with the payloads in the table.
async fn through_the_table<E>(events: &[E]) -> (Vec<E>, Vec<Payload>)
where
    E: Event<Codec: Decode<E>> + Clone + Debug + Send + Sync + 'static,
{
    let (sender, mut handled) = mpsc::unbounded_channel();
    let handler = move |event: E| {
        let sent = sender.send(event).map_err(|_| "nobody listens");
        async move { sent }
    };
    let store = MemoryStore::new();
    let outbox = Outbox::single_node(store.clone()).workers(1).handle(handler).start().await.expect("starts");
    let mut tx = store.begin();
    outbox.write_all(&mut tx, events).await.expect("writes");
    tx.commit();
    ended(&outbox, events.len() as u64).await;
    outbox.shutdown().await;
    let mut received = Vec::new();
    while let Ok(event) = handled.try_recv() {
        received.push(event);
    }
    (received, store.inspect().rows().iter().map(|row| row.event.payload().clone()).collect())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn json_comes_back(notes in prop::collection::vec(("\\PC*", any::<Option<i64>>()), 1..5)) {
        let notes: Vec<_> = notes.into_iter().map(|(text, stars)| Note { text, stars }).collect();
        let (handled, payloads) = block_on(through_the_table(&notes));
        for (payload, note) in payloads.iter().zip(&notes) {
            prop_assert_eq!(payload.as_json(), Some(&*serde_json::to_string(note).expect("serialises")));
        }
        prop_assert_eq!(handled, notes);
    }

    #[test]
    fn protobuf_comes_back(notes in prop::collection::vec(("[a-z]{1,9}", any::<Option<i64>>(), any::<Vec<u8>>()), 1..5)) {
        let note = |(text, stars, picture)| ProtoNote { text, stars, picture };
        let notes: Vec<_> = notes.into_iter().map(note).collect();
        let (handled, payloads) = block_on(through_the_table(&notes));
        for (payload, note) in payloads.iter().zip(&notes) {
            prop_assert_eq!(payload.content_type(), "application/x-protobuf");
            prop_assert_eq!(payload.as_bytes(), prost::Message::encode_to_vec(note));
        }
        prop_assert_eq!(handled, notes);
    }

    #[test]
    fn bytes_come_back(pictures in prop::collection::vec(any::<Vec<u8>>(), 1..5)) {
        let pictures: Vec<_> = pictures.into_iter().map(Picture).collect();
        let (handled, payloads) = block_on(through_the_table(&pictures));
        for (payload, Picture(bytes)) in payloads.iter().zip(&pictures) {
            prop_assert_eq!((payload.content_type(), payload.as_bytes()), ("image/png", &**bytes));
        }
        prop_assert_eq!(handled, pictures);
    }

    #[test]
    fn a_codec_of_ones_own_comes_back(numbers in prop::collection::vec(any::<u64>(), 1..5)) {
        let events: Vec<_> = numbers.into_iter().map(|number| Counted(number & !1)).collect();
        prop_assert_eq!(block_on(through_the_table(&events)).0, events);
    }
}

#[test]
fn json_of_a_closer_content_type_is_kept_as_bytes() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    #[event(name = "note.cloud", content_type = "application/cloudevents+json")]
    struct CloudNote {
        text: String,
    }
    let note = CloudNote { text: "é".to_owned() };
    let (handled, payloads) = block_on(through_the_table(std::slice::from_ref(&note)));
    assert_eq!(handled, [note]);
    assert_eq!((payloads[0].content_type(), payloads[0].as_json()), ("application/cloudevents+json", None));
    assert_eq!(payloads[0].as_bytes(), "{\"text\":\"é\"}".as_bytes());
}

#[tokio::test]
async fn events_that_cannot_be_encoded_are_refused_by_the_name_of_their_type() {
    let store = MemoryStore::new();
    let outbox = Outbox::writer_only(store.clone()).start().await.expect("starts");
    let mut tx = store.begin();
    let error = outbox.write_all(&mut tx, &[Counted(2), Counted(3)]).await.expect_err("refused");
    assert!(matches!(&error, WriteError::Invalid(invalid) if invalid.field() == "payload"), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("`counted`") && text.contains("text/x-digits: an odd number"), "{text}");
    outbox.write(&mut tx, &Counted(4)).await.expect("the transaction is as it was");
    tx.commit();
    outbox.shutdown().await;
    assert_eq!(store.inspect().rows().len(), 1);
}

/// The event of a protobuf message, with whatever payload.
fn note_with(content_type: &str, bytes: &[u8]) -> Envelope {
    Envelope::builder(ProtoNote::TYPE).payload_bytes(content_type, bytes.to_vec()).build().expect("valid")
}

#[tokio::test]
async fn a_payload_of_another_format_goes_dead_uncalled_and_says_why() {
    let store = MemoryStore::new();
    let (sender, mut handled) = mpsc::unbounded_channel();
    let handler = move |note: ProtoNote| {
        let sent = sender.send(note.text).map_err(|_| "nobody listens");
        async move { sent }
    };
    let outbox = Outbox::single_node(store.clone()).workers(1).handle(handler).start().await.expect("starts");
    let bytes = prost::Message::encode_to_vec(&ProtoNote { text: "kept".to_owned(), ..ProtoNote::default() });
    let mut tx = store.begin();
    let events = [
        Envelope::json(ProtoNote::TYPE, "{}").expect("valid"),
        note_with("image/png", &bytes),
        note_with("application/x-protobuf", &[0xff]),
        note_with("Application/X-Protobuf; messageType=Note", &bytes),
    ];
    outbox.write_all(&mut tx, events).await.expect("writes");
    tx.commit();
    ended(&outbox, 4).await;
    outbox.shutdown().await;

    assert_eq!(handled.recv().await.as_deref(), Some("kept"));
    assert_eq!(handled.recv().await, None, "the others were not handled");
    let rows = store.inspect().rows();
    let dead: Vec<_> = rows.iter().map(|row| (row.status, row.attempts)).collect();
    assert_eq!(dead, [(Status::Dead, 0), (Status::Dead, 0), (Status::Dead, 0), (Status::Done, 0)]);
    let error = |row: usize| rows[row].last_error.clone().unwrap_or_default();
    assert_eq!(
        error(0),
        "the payload of `note.proto` is application/json, but is read as application/x-protobuf; let writers and \
         handlers of this event name the same codec"
    );
    assert!(error(1).contains("is image/png, but is read as application/x-protobuf"), "{}", error(1));
    assert!(error(2).starts_with("the payload is not a valid `note.proto`: "), "{}", error(2));
    assert_eq!(rows[2].event.payload().as_bytes(), [0xff], "what is stored is never rewritten");
}

#[tokio::test]
async fn a_handler_of_deliveries_reads_them_by_the_codec_of_a_type() {
    let store = MemoryStore::new();
    let handler = async |deliveries: Vec<Delivery>| -> Vec<Result<(), HandlerError>> {
        deliveries
            .iter()
            .map(|delivery| delivery.decode::<Counted>().map(|Counted(number)| assert_eq!(number, 2)))
            .collect()
    };
    let outbox = Outbox::single_node(store.clone()).handler(on_batch(("counter", "counted"), 10, handler));
    let outbox = outbox.start().await.expect("starts");
    let mut tx = store.begin();
    outbox.write(&mut tx, &Counted(2)).await.expect("writes");
    let json = Envelope::builder(Counted::TYPE).aggregate_type("counter").payload_json("2");
    outbox.write(&mut tx, json).await.expect("writes");
    tx.commit();
    ended(&outbox, 2).await;
    outbox.shutdown().await;
    let statuses: Vec<_> = store.inspect().rows().iter().map(|row| (row.status, row.attempts)).collect();
    assert_eq!(statuses, [(Status::Done, 0), (Status::Dead, 0)]);
}
