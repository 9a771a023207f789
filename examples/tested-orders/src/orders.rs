//! What happens to orders, as rows and as events.

use pillarbox::Event;
use pillarbox::write::Writer;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::BoxError;

/// An order was placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
pub struct OrderPlaced {
    /// The order.
    pub order_id: i64,
    /// The one who placed it.
    pub customer: String,
    /// The price.
    pub total_cents: i64,
}

/// It is time to ask the customer what they think.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(name = "order.feedback_due", aggregate = "order", key = order_id)]
pub struct FeedbackDue {
    /// The order.
    pub order_id: i64,
    /// The one to ask.
    pub customer: String,
}

/// An order as it is placed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewOrder {
    /// The one who places it.
    pub customer: String,
    /// The price.
    pub total_cents: i64,
}

/// Places an order in the caller's transaction: its row and its event are committed together, or neither is. A request hands in
/// `outbox.writer()`, a handler `delivery.outbox()?`.
///
/// # Errors
/// The database's.
pub async fn place(outbox: &Writer, tx: &mut PgConnection, order: &NewOrder) -> Result<i64, BoxError> {
    let order_id = sqlx::query_scalar("insert into orders (customer, total_cents) values ($1, $2) returning id")
        .bind(&order.customer)
        .bind(order.total_cents)
        .fetch_one(&mut *tx)
        .await?;
    let placed = OrderPlaced { order_id, customer: order.customer.clone(), total_cents: order.total_cents };
    outbox.write(tx, &placed).await?;
    Ok(order_id)
}
