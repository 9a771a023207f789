use std::sync::Arc;
use std::time::Instant;

use sqlx::PgPool;
use sqlx::types::Json;
use tokio::task::JoinSet;

use crate::Failure;
use crate::calls::Calls;
use crate::event::Event;

/// Messages that are sent, read and removed at once.
const BATCH: usize = 1_000;
/// Loops that read and remove, each on a connection of its own.
pub(crate) const LOOPS: u32 = 2;

/// The end of a message that was handled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Removal {
    /// Its row is deleted.
    Delete,
    /// Its row is moved into the archive of the queue.
    Archive,
}

impl Removal {
    fn sql(self) -> &'static str {
        match self {
            Self::Delete => "SELECT pgmq.delete('events', $1)",
            Self::Archive => "SELECT pgmq.archive('events', $1)",
        }
    }
}

pub(crate) async fn fill(pool: &PgPool, events: u32) -> Result<(), Failure> {
    pgmq::PGMQueueExt::new_with_pool(pool.clone()).await.install_sql_from_embedded().await?;
    sqlx::query("SELECT pgmq.create('events')").execute(pool).await?;
    for first in (0..events).step_by(BATCH) {
        let batch: Vec<_> = (first..events).take(BATCH).map(|number| Json(Event::new(number))).collect();
        sqlx::query("SELECT pgmq.send_batch('events', $1::jsonb[])").bind(batch).execute(pool).await?;
    }
    Ok(())
}

pub(crate) async fn drain(pool: &PgPool, events: u32, removal: Removal) -> Result<f64, Failure> {
    let calls = Arc::new(Calls::new(events));
    let mut loops = JoinSet::new();
    let started = Instant::now();
    for _ in 0..LOOPS {
        loops.spawn(read_and_remove(pool.clone(), Arc::clone(&calls), removal));
    }
    while let Some(ended) = loops.join_next().await {
        ended??;
    }
    let seconds = started.elapsed().as_secs_f64();
    calls.check()?;
    Ok(seconds)
}

/// Reads until there is nothing more, and removes what was handled.
async fn read_and_remove(pool: PgPool, calls: Arc<Calls>, removal: Removal) -> Result<(), Failure> {
    const READ: &str = "SELECT msg_id, message FROM pgmq.read('events', 30, $1)";
    let mut connection = pool.acquire().await?;
    loop {
        let messages: Vec<(i64, Json<Event>)> =
            sqlx::query_as(READ).bind(BATCH as i32).fetch_all(&mut *connection).await?;
        if messages.is_empty() {
            return Ok(());
        }
        for (_, Json(event)) in &messages {
            calls.count(event.number);
        }
        let ids: Vec<_> = messages.iter().map(|(id, _)| *id).collect();
        let removed = sqlx::query(removal.sql()).bind(&ids).execute(&mut *connection).await?.rows_affected();
        if removed != ids.len() as u64 {
            return Err(format!("{removed} of {} messages were removed", ids.len()).into());
        }
    }
}
