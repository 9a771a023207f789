//! The number of instructions that an event takes on its way through a process: run by `scripts/instructions`, which
//! compares it with the accepted one.
//!
//! Each benchmark is for [`EVENTS`] events.

#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(missing_docs, unused_qualifications, reason = "the macros of gungraun write what we would not")]

#[path = "../../pillarbox-engine/benches/path/mod.rs"]
mod path;

use std::hint::black_box;
use std::time::Duration;

use gungraun::prelude::*;
use path::{Counted, Table, envelopes};
use pillarbox_core::event::{Envelope, partition_of};
use pillarbox_core::retry::{ExponentialBackoff, RetryPolicy as _};
use pillarbox_engine::run::Outbox;

/// So many that what is done once per run hardly counts, and so few that all of it takes seconds.
const EVENTS: u32 = 10_000;

#[library_benchmark]
fn build_envelope() -> Vec<Envelope> {
    envelopes(black_box(EVENTS), EVENTS)
}

fn keys() -> Vec<String> {
    (0..EVENTS).map(|number| format!("order-{number}")).collect()
}

#[library_benchmark]
#[bench::of_an_order(setup = keys)]
fn partition(keys: Vec<String>) -> u64 {
    keys.iter().map(|key| u64::from(partition_of(black_box(key)))).sum()
}

#[library_benchmark]
fn retry_delay() -> Duration {
    let (policy, random) = (ExponentialBackoff::default(), Counted::default());
    (0..EVENTS).map(|number| policy.delay(black_box(number % 10 + 1), &random)).sum()
}

// The engine alone: read, dispatch, handle, settle.
#[library_benchmark]
#[bench::settled_one_by_one(Table::backlog(EVENTS, EVENTS), 1)]
#[bench::settled_by_hundreds(Table::backlog(EVENTS, EVENTS), 100)]
#[bench::settled_by_thousands(Table::backlog(EVENTS, EVENTS), 1000)]
fn deliver(table: Table, settle_batch: usize) -> Table {
    table.drain(|store| Outbox::single_node(store).settle_batch(settle_batch), EVENTS)
}

#[library_benchmark]
#[bench::one_key(Table::backlog(EVENTS, 1))]
#[bench::a_hundred_keys(Table::backlog(EVENTS, 100))]
#[bench::a_key_each(Table::backlog(EVENTS, EVENTS))]
fn deliver_in_order(table: Table) -> Table {
    table.drain(Outbox::partitioned, EVENTS)
}

#[library_benchmark]
#[bench::single_node(Table::empty(), envelopes(EVENTS, EVENTS))]
fn write_and_deliver(table: Table, events: Vec<Envelope>) -> Table {
    table.write_and_deliver(events)
}

library_benchmark_group!(
    name = way_of_an_event,
    benchmarks = [build_envelope, partition, retry_delay, deliver, deliver_in_order, write_and_deliver]
);
main!(library_benchmark_groups = way_of_an_event);
