//! The handler of a placed order: the customer gets a receipt.

use pillarbox::Delivery;
use sqlx::PgPool;

use crate::orders::OrderPlaced;

#[derive(Debug, Clone)]
pub(crate) struct Receipts {
    pub(crate) pool: PgPool,
}

impl Receipts {
    /// "Sends" a receipt; an error means that it is tried again.
    ///
    /// It may be called more than once for the same event, after a crash for example. What it does bears the event's id,
    /// so that the second time changes nothing. A real one would pass the id to the mail service.
    pub(crate) async fn send(self, order: OrderPlaced, delivery: Delivery) -> Result<(), sqlx::Error> {
        let attempt = delivery.attempt();
        tracing::info!(order = order.order_id, customer = order.customer, attempt, "sending a receipt");
        sqlx::query("insert into receipts (event_id, order_id) values ($1, $2) on conflict do nothing")
            .bind(delivery.id().as_str())
            .bind(order.order_id)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
