//! The time that an event takes on its way through a process: `cargo bench -p pillarbox-engine --bench engine`.
//!
//! The lanes, the workers and the settler are measured as users meet them, by draining a table in memory: with few keys
//! and with many, with small batches and with large ones. The effect of a change shows in the difference to the run
//! before it.

#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(missing_docs, reason = "the macros of criterion write functions without")]

mod path;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use path::{Counted, Table, envelope, envelopes, stamp};
use pillarbox_core::event::partition_of;
use pillarbox_core::retry::{ExponentialBackoff, RetryPolicy as _};
use pillarbox_engine::run::Outbox;

const EVENTS: u32 = 100_000;

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    let stamp = stamp();
    group.bench_function("envelope", |bencher| bencher.iter(|| envelope(&stamp, black_box(7), 100)));
    for key in ["order-1", "550e8400-e29b-41d4-a716-446655440000"] {
        let id = BenchmarkId::new("partition of a key", key);
        group.bench_function(id, |bencher| bencher.iter(|| partition_of(black_box(key))));
    }
    let (policy, random) = (ExponentialBackoff::default(), Counted::default());
    group.bench_function("retry delay", |bencher| bencher.iter(|| policy.delay(black_box(5), &random)));
    group.finish();
}

/// The engine alone: read, dispatch, handle, settle.
fn deliver(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("deliver");
    group.sample_size(10).throughput(Throughput::Elements(EVENTS.into()));
    for batch in [1, 100, 1000] {
        group.bench_function(BenchmarkId::new("settled by", batch), |bencher| {
            bencher.iter_batched(
                || Table::backlog(EVENTS, EVENTS),
                |table| table.drain(|store| Outbox::single_node(store).settle_batch(batch), EVENTS),
                BatchSize::PerIteration,
            );
        });
    }
    for keys in [1, 100, EVENTS] {
        group.bench_function(BenchmarkId::new("in order by keys", keys), |bencher| {
            bencher.iter_batched(
                || Table::backlog(EVENTS, keys),
                |table| table.drain(Outbox::partitioned, EVENTS),
                BatchSize::PerIteration,
            );
        });
    }
    group.bench_function("written, from memory", |bencher| {
        bencher.iter_batched(
            || (Table::empty(), envelopes(EVENTS, EVENTS)),
            |(table, events)| table.write_and_deliver(events),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, build, deliver);
criterion_main!(benches);
