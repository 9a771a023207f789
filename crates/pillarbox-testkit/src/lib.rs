//! For those who test with Pillarbox or write a backend for it.
//!
//! - [`conformance`] proves that a store keeps to its port, one test for each behaviour the port lists, and that the
//!   engine keeps its promises on it. A backend writes a [`Harness`] and no test; [`MemoryHarness`] is an example.
//! - [`Recorder`] is a handler that counts its calls, [`FaultyStore`] a store whose database fails when told to.
//! - [`invariants`] names what must hold whatever happens.

pub mod conformance;
mod events;
mod faulty;
mod harness;
pub mod invariants;
mod memory;
mod nodes;
mod payloads;
mod recorder;
mod run;
mod scenarios;

pub use faulty::{Fault, FaultyStore, Operation};
pub use harness::{Capabilities, Columns, Harness};
pub use memory::MemoryHarness;
pub use recorder::{Call, Ending, Recorder};
