//! Invoices, one for each order.

use async_nats::Message;
use pillarbox::Inbox;
use pillarbox::error::BoxError;
use serde::Deserialize;
use sqlx::PgPool;

/// Where the id of an event stands, by the format of the route that published it. `Nats-Msg-Id` is the last choice: it names the event and
/// the subject, so that an event which comes by two subjects has two.
const ID_HEADERS: [&str; 3] = ["event-id", "ce-id", "Nats-Msg-Id"];

#[derive(Debug, Deserialize)]
struct OrderPlaced {
    order_id: String,
    total_cents: i64,
}

pub(crate) struct Billing {
    pool: PgPool,
    inbox: Inbox,
}

impl Billing {
    pub(crate) async fn new(pool: PgPool, inbox: Inbox) -> Result<Self, BoxError> {
        let table = "CREATE TABLE IF NOT EXISTS invoice (order_id text NOT NULL, total_cents bigint NOT NULL)";
        sqlx::query(table).execute(&pool).await?;
        Ok(Self { pool, inbox })
    }

    /// Writes the invoice and remembers the message, or does neither.
    pub(crate) async fn handle(&self, message: &Message) -> Result<(), BoxError> {
        let id = message_id(message).ok_or("it has no id to tell it from others by")?;
        let mut tx = self.pool.begin().await?;
        if self.inbox.once(&mut *tx, id).await?.is_first() {
            let order: OrderPlaced = serde_json::from_slice(&message.payload)?;
            let invoice = sqlx::query("INSERT INTO invoice (order_id, total_cents) VALUES ($1, $2)");
            invoice.bind(order.order_id).bind(order.total_cents).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

fn message_id(message: &Message) -> Option<&str> {
    let headers = message.headers.as_ref()?;
    ID_HEADERS.into_iter().find_map(|name| headers.get(name)).map(|id| id.as_str())
}
