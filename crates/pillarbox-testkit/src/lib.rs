//! For those who test with Pillarbox or write a backend for it.
//!
//! To test code that uses Pillarbox:
//!
//! - [`TestOutbox`] is an outbox in any mode: in memory with a clock that the test moves, [`FakeClock`], or on a store of your own, with
//!   tables of a [`unique_name`]. [`wait_until_idle`] waits for the deliveries of any outbox.
//! - [`WrittenEvents`] are what a transaction has written, before its commit, or what is committed, for assertions.
//! - [`Recorder`] is a handler that counts its calls, [`RecordingHook`] remembers what was written.
//!
//! To test a backend:
//!
//! - [`conformance`] proves that a store keeps to its port, one test for each behaviour the port lists, and that the
//!   engine keeps its promises on it. A backend writes a [`Harness`] and no test; [`MemoryHarness`] is an example.
//! - [`publishers`] does the same for publishers: a [`PublisherHarness`](publishers::PublisherHarness), a proxy that cuts
//!   connections, a broker of the test's own that can be killed. [`MemoryPublisher`] is a publisher without a broker.
//! - [`adapters`] has what tests of adapters share; [`drop_after`] drops a future at any of its waits, [`CutShort`] at any
//!   moment of the time it takes.
//! - [`FailoverDrill`] is an outbox in each mode, under which a test takes the database back to an earlier state.
//! - [`FaultyStore`] is a store whose database fails when told to.
//! - [`rows_at`] and [`done_at`] name rows by their places alone.
//! - [`invariants`] names what must hold whatever happens.

pub mod adapters;
pub mod conformance;
mod cut_short;
mod drop_after;
mod events;
mod failover_drill;
mod fake_clock;
mod faulty;
mod harness;
pub mod invariants;
mod memory;
mod nodes;
mod payloads;
pub mod publishers;
mod recorder;
mod recording_hook;
mod rows;
mod run;
mod scenarios;
mod test_outbox;
mod written_events;

pub use cut_short::CutShort;
pub use drop_after::drop_after;
pub use failover_drill::FailoverDrill;
pub use fake_clock::FakeClock;
pub use faulty::{Fault, FaultyStore, Operation};
pub use harness::{Capabilities, Columns, ErrorOf, Harness, Held, InnerOf};
pub use memory::MemoryHarness;
pub use publishers::{Answer, MemoryPublisher};
pub use recorder::{Call, Ending, Recorder};
pub use recording_hook::RecordingHook;
pub use rows::{done_at, rows_at};
pub use test_outbox::{TestOutbox, unique_name, wait_until_idle};
pub use written_events::{WrittenEvent, WrittenEvents};
