//! Every way to name a codec.

use pillarbox::error::BoxError;
use pillarbox::event::{Codec, Decode, Encode};
use pillarbox::run::SingleNode;
use pillarbox::{Event, MemoryStore, Outbox};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "a.json", codec = json, content_type = "application/vnd.a+json")]
struct AsJson<T> {
    value: T,
}

#[derive(Event)]
#[event(name = "a.raw", codec = raw, content_type = "image/png")]
struct AsBytes(Vec<u8>);

impl AsRef<[u8]> for AsBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for AsBytes {
    type Error = String;
    fn try_from(bytes: Vec<u8>) -> Result<Self, String> {
        Ok(Self(bytes))
    }
}

mod own {
    use super::*;

    pub(crate) struct Empty;
    impl Codec for Empty {
        const CONTENT_TYPE: &'static str = "application/x-empty";
    }
    impl<T> Encode<T> for Empty {
        fn encode(_: &T) -> Result<Vec<u8>, BoxError> {
            Ok(Vec::new())
        }
    }
    impl<T: Default> Decode<T> for Empty {
        fn decode(_: &[u8]) -> Result<T, BoxError> {
            Ok(T::default())
        }
    }
}
use own::Empty;

#[derive(Default, Event)]
#[event(name = "a.own", codec = own::Empty)]
struct Own;

#[derive(Default, Event)]
#[event(name = "an.imported", codec = Empty)]
enum Imported {
    #[default]
    Here,
}

/// Written, and never read here: `Serialize` alone is enough.
#[derive(Serialize, Event)]
#[event(name = "written.only")]
struct WrittenOnly;

fn register(outbox: SingleNode) -> SingleNode {
    outbox
        .handle(|_: AsJson<u8>| async {})
        .handle(|_: AsBytes| async {})
        .handle(|_: Own| async {})
        .handle(|_: Imported| async {})
}

#[test]
fn every_way_to_name_a_codec_is_taken() {
    let types = [
        AsJson::<u8>::CONTENT_TYPE,
        AsBytes::CONTENT_TYPE,
        Own::CONTENT_TYPE,
        Imported::CONTENT_TYPE,
        WrittenOnly::CONTENT_TYPE,
    ];
    let empty = "application/x-empty";
    assert_eq!(types, ["application/vnd.a+json", "image/png", empty, empty, "application/json"]);
    drop(register(Outbox::single_node(MemoryStore::new())));
}
