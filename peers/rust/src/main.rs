//! Enqueues or drains events with a queue in Rust: `peers QUEUE fill|drain EVENTS`, on the database that `DATABASE_URL` names.
//!
//! A drain prints its seconds, from the call that begins it until the database has every event done, and fails unless the
//! handler was called exactly once for each.

mod calls;
mod event;
mod pgmq_queue;
mod river;

use std::error::Error;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use pgmq_queue::Removal;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [queue, task, events] = arguments.as_slice() else {
        return Err("usage: peers QUEUE fill|drain EVENTS".into());
    };
    let events = events.parse()?;
    let seconds = match (queue.as_str(), task.as_str()) {
        ("pgmq-delete" | "pgmq-archive", "fill") => return pgmq_queue::fill(&connect(1).await?, events).await,
        ("pgmq-delete", "drain") => {
            pgmq_queue::drain(&connect(pgmq_queue::LOOPS).await?, events, Removal::Delete).await?
        }
        ("pgmq-archive", "drain") => {
            pgmq_queue::drain(&connect(pgmq_queue::LOOPS).await?, events, Removal::Archive).await?
        }
        ("riverqueue", "fill") => return river::fill(connect(1).await?, events).await,
        ("riverqueue", "drain") => river::drain(connect(river::CONNECTIONS).await?, events).await?,
        _ => return Err(format!("no task {task} of a queue {queue}").into()),
    };
    println!("{seconds:.4}");
    Ok(())
}

/// A pool of open connections, so that opening them is no part of a drain.
async fn connect(connections: u32) -> Result<PgPool, Failure> {
    let url = std::env::var("DATABASE_URL")?;
    Ok(PgPoolOptions::new().min_connections(connections).max_connections(connections).connect(&url).await?)
}
