//! Two protocols of the engine, each explored exhaustively: every order of steps of small instances, with every failure that the
//! protocol is made for, by the model checker [stateright](https://docs.rs/stateright).
//!
//! - [`partitions`]: which node owns a partition, and delivers its events.
//! - [`safe_point`]: from which `seq` on the owner of a partition reads, so that no event of a key overtakes another.
//!
//! Each test explores an instance that looks closely at one thing and is small enough that all of them take seconds. And
//! each rule of the protocols is broken once: the model has to find what goes wrong without it.
//!
//! Pure functions of the engine decide here as they do there. `ownership::spread` is public. Two others are not:
//! `claim/safe_point.rs` and `store/lease_clock.rs` are compiled once more here, text for text, and find at the root of this program
//! the names that they take from their own crate.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test fails by panicking, and tells what it saw")]

mod partitions;
mod safe_point;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

// The names that the engine's own files take from its crate.
use pillarbox_core::{clock, ownership, store};

mod planted_bug {
    pub(crate) const fn is_active(_name: &str) -> bool {
        false
    }
}

/// Explores every state, and asserts that all properties hold.
fn holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().spawn_bfs().join();
    println!("{} states, up to {} steps away", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// Asserts that a property does not hold, and shows the shortest way to where it does not.
fn breaks<M>(property: &'static str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let found = HasDiscoveries::AllOf(BTreeSet::from([property]));
    let checker = model.checker().finish_when(found).spawn_bfs().join();
    let path = checker.discovery(property).expect("a broken rule shows");
    println!("\"{property}\" does not hold after {:?}", path.into_actions());
}
