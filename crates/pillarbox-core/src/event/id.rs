use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use ulid::Ulid;

use super::{InvalidEvent, limits};
use crate::clock::{Clock, Random, SystemClock, SystemRandom, Timestamp};
use crate::lock::Mutex;

/// The identity of an event for its consumers: unique, at most 36 characters, a ULID unless the writer chose otherwise.
///
/// Consumers deduplicate by it. It says nothing about order; that is the row's `seq`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Arc<str>);

impl EventId {
    /// An id of the writer's own choosing: a UUID, a natural key.
    ///
    /// # Errors
    /// When it is empty, longer than 36 characters, or contains NUL.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidEvent> {
        let id = id.as_ref();
        limits::check_text("id", id, limits::EVENT_ID)?;
        Ok(Self(id.into()))
    }

    /// An id as a table holds it, which other programs may have given a form that [`new`](Self::new) refuses.
    #[must_use]
    pub fn from_stored(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// As [`new`](EventId::new): `outbox.delivered(text.parse()?)`.
impl FromStr for EventId {
    type Err = InvalidEvent;

    fn from_str(id: &str) -> Result<Self, InvalidEvent> {
        Self::new(id)
    }
}

impl AsRef<str> for EventId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As its text.
impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// From a text, as [`new`](EventId::new).
impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).and_then(|id| Self::new(id).map_err(de::Error::custom))
    }
}

/// Gives new events their id and their time.
///
/// Ids are monotonic ULIDs: within one stamp each is greater than the one before, even when the clock stands still or
/// runs backwards.
#[derive(Debug)]
pub struct Stamp {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    last: Mutex<Ulid>,
}

impl Stamp {
    /// A stamp on the given clock and random source.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random, last: Mutex::new(Ulid::nil()) }
    }

    /// The process-wide stamp on the operating system's clock.
    #[must_use]
    pub fn system() -> &'static Self {
        static SYSTEM: OnceLock<Stamp> = OnceLock::new();
        SYSTEM.get_or_init(|| Self::new(Arc::new(SystemClock), Arc::new(SystemRandom)))
    }

    /// The current time of the stamp's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The next id.
    #[must_use]
    pub fn next_id(&self) -> EventId {
        let millis = u64::try_from(self.clock.now().as_micros() / 1000).unwrap_or(0);
        let random = u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64());
        // A poisoned lock only means that another thread panicked between two plain assignments.
        let mut last = self.last.lock();
        let fresh = Ulid::from_parts(millis, random);
        *last = if fresh.timestamp_ms() > last.timestamp_ms() {
            fresh
        } else {
            // 80 random bits leave room for more increments than a process can make in a millisecond.
            last.increment().unwrap_or(fresh)
        };
        let id = *last;
        drop(last);
        let mut buffer = [0; ulid::ULID_LEN];
        EventId(Arc::from(&*id.array_to_str(&mut buffer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Frozen(Timestamp);
    impl Clock for Frozen {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    #[test]
    fn an_id_is_a_text_in_json() {
        let id = EventId::new("order-1").expect("valid");
        let json = serde_json::to_string(&id).expect("writes");
        assert_eq!(json, r#""order-1""#);
        assert_eq!(serde_json::from_str::<EventId>(&json).expect("reads"), id);
        let refused = serde_json::from_str::<EventId>(r#""""#).expect_err("is empty").to_string();
        assert!(refused.contains("`id`"), "{refused}");
    }

    #[test]
    fn ids_grow_while_the_clock_stands_still() {
        let stamp = Stamp::new(Arc::new(Frozen(Timestamp::from_micros(1_000_000))), Arc::new(SystemRandom));
        let ids: Vec<_> = (0..1000).map(|_| stamp.next_id()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| id.as_str().len() == 26));
    }
}
