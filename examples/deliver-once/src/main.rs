//! A process that delivers what is due and ends: the body of an AWS Lambda function, or of a job that a scheduler starts.
//!
//! ```text
//! cd examples/deliver-once && cargo run -- shop.db 15      # exit code 0: nothing due is left; 3: something is
//! ```
//!
//! The runtime crate of AWS is left out: it brings an HTTP client and a server, and adds nothing that [`invoke`] needs. With it the
//! program is:
//!
//! ```ignore
//! let store = PostgresStore::connect(url).await?; // once for all invocations of this process
//! lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| {
//!     let left = invoke(store.clone(), event.context.deadline().duration_since(SystemTime::now())?).await?;
//!     Ok::<_, BoxError>(json!({ "due": left.due }))
//! }))
//! .await
//! ```

#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

use std::process::ExitCode;
use std::time::Duration;

use pillarbox::error::BoxError;
use pillarbox::run::Drained;
use pillarbox::{Delivery, Event, Outbox, SqliteStore, Store};
use serde::{Deserialize, Serialize};

/// The time that is kept of an invocation, since ending in order may take a few seconds more than the deadline.
const MARGIN: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced {
    order_id: String,
}

async fn send_receipt(event: OrderPlaced, delivery: Delivery) {
    println!("receipt for {} (event {})", event.order_id, delivery.id());
}

/// Delivers what is due within the time that remains of this invocation. Nothing runs on after it: a process that is frozen until the
/// next invocation holds no lease meanwhile. Invocations may overlap, since mode `multi_node` gives each its own events.
async fn invoke(store: impl Store, remaining: Duration) -> Result<Drained, BoxError> {
    let outbox = Outbox::multi_node(store).handle(send_receipt).start().await?;
    Ok(outbox.drain(remaining.saturating_sub(MARGIN)).await?)
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let mut arguments = std::env::args().skip(1);
    let database = arguments.next().unwrap_or_else(|| "shop.db".to_owned());
    let seconds = arguments.next().map_or(Ok(15), |text| text.parse())?;
    let store = SqliteStore::open(&database).await?;
    store.migrate().await?;
    let left = invoke(store, Duration::from_secs(seconds)).await?;
    println!("{left}");
    Ok(if left.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

#[cfg(test)]
mod tests {
    use pillarbox::{Admin as _, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn each_invocation_delivers_what_is_due_and_holds_nothing_afterwards() -> Result<(), BoxError> {
        let store = MemoryStore::new();
        for invocation in 1..=2 {
            let payload = format!(r#"{{"order_id": "o-{invocation}"}}"#);
            store.inspect().insert_three_columns(&format!("event-{invocation}"), "order.placed", &payload)?;
            let left = invoke(store.clone(), Duration::from_secs(60)).await?;
            assert!(left.is_complete(), "{left}");
            assert_eq!(store.counts().await?.done, invocation);
            assert!(store.nodes().await?.is_empty());
        }
        Ok(())
    }
}
