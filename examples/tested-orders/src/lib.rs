//! A small service that takes orders, on PostgreSQL with sqlx and axum. Each of its parts can be tested by itself: `docs/testing.md`
//! goes through the tests, and `docs/coming-from.md` sets the service beside other queues.

mod operations;
mod orders;
mod receipts;
mod web;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use pillarbox::backend::store::Store;
use pillarbox::handle::on;
use pillarbox::run::MultiNode;
use pillarbox::{Delivery, Outbox, Retry, in_transaction};
use sqlx::PgPool;

pub use operations::{failed, replay_failed};
pub use orders::{FeedbackDue, NewOrder, OrderPlaced, place};
pub use receipts::{Mailer, ask_for_feedback, send_receipt};
pub use web::{Shop, routes};

/// An error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The outbox of the service on any store: production hands in that of PostgreSQL, and tests what they need.
pub fn outbox(store: impl Store, pool: PgPool, mailer: Arc<dyn Mailer>) -> MultiNode {
    let asking = Arc::clone(&mailer);
    let receipts = move |order, delivery, tx| send_receipt(Arc::clone(&mailer), order, delivery, tx);
    Outbox::multi_node(store)
        .retry(Retry::exponential(Duration::from_secs(1), Duration::from_secs(3600)).max_attempts(25))
        .handler(on(in_transaction(pool, receipts)).named("receipts").timeout(Duration::from_secs(30)))
        .handle(move |feedback: FeedbackDue, delivery: Delivery| {
            ask_for_feedback(Arc::clone(&asking), feedback, delivery)
        })
}
