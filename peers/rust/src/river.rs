use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use riverqueue::migrate::PostgresMigrator;
use riverqueue::{Client, InsertOpts, Job, QUEUE_DEFAULT, QueueConfig, WorkContext, WorkOutcome, Worker, Workers};
use sqlx::PgPool;
use tokio::time::sleep;

use crate::Failure;
use crate::calls::Calls;
use crate::event::Event;

// The settings of River's own benchmark, `riverqueue bench`.
const BATCH: usize = 5_000;
pub(crate) const CONNECTIONS: u32 = 50;
const WORKERS: usize = 2_000;
const FETCH_COOLDOWN: Duration = Duration::from_millis(2);
const FETCH_POLL_INTERVAL: Duration = Duration::from_millis(20);

struct Nothing(Arc<Calls>);

impl Worker<Event> for Nothing {
    type Error = Infallible;

    async fn work(&self, _context: WorkContext, job: Job<Event>) -> Result<WorkOutcome, Infallible> {
        self.0.count(job.args.number);
        Ok(WorkOutcome::Complete)
    }
}

pub(crate) async fn fill(pool: PgPool, events: u32) -> Result<(), Failure> {
    PostgresMigrator::new(pool.clone()).migrate_up().await?;
    let client = Client::builder(pool).build()?;
    for first in (0..events).step_by(BATCH) {
        let batch: Vec<_> =
            (first..events).take(BATCH).map(|number| (Event::new(number), InsertOpts::default())).collect();
        client.insert_many(batch).await?;
    }
    Ok(())
}

pub(crate) async fn drain(pool: PgPool, events: u32) -> Result<f64, Failure> {
    const PENDING: &str = "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')";
    let calls = Arc::new(Calls::new(events));
    let mut workers = Workers::new();
    workers.add(Nothing(Arc::clone(&calls)))?;
    let queue =
        QueueConfig::new(WORKERS).with_fetch_cooldown(FETCH_COOLDOWN).with_fetch_poll_interval(FETCH_POLL_INTERVAL);
    let client = Client::builder(pool.clone()).workers(workers).queue(QUEUE_DEFAULT, queue).build()?;
    let started = Instant::now();
    let mut run = client.start()?;
    calls.complete().await;
    // The last completions are still being written.
    while sqlx::query_scalar(PENDING).fetch_one(&pool).await? {
        sleep(Duration::from_millis(5)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    run.stop().await?;
    calls.check()?;
    Ok(seconds)
}
