//! Payments, each booked once.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use pillarbox::Inbox;
use pillarbox::adapters::sqlx::begin_immediate;
use pillarbox::error::BoxError;
use pillarbox::inbox::InboxError;
use serde::Deserialize;
use sqlx::SqlitePool;

#[derive(Debug, Deserialize)]
struct Payment {
    account: String,
    cents: i64,
}

#[derive(Clone)]
pub(crate) struct Payments {
    pool: SqlitePool,
    inbox: Inbox,
}

impl Payments {
    pub(crate) async fn new(pool: SqlitePool, inbox: Inbox) -> Result<Self, BoxError> {
        let table = "CREATE TABLE IF NOT EXISTS booking (account TEXT NOT NULL, cents INTEGER NOT NULL)";
        sqlx::query(table).execute(&pool).await?;
        Ok(Self { pool, inbox })
    }

    pub(crate) fn router(self) -> Router {
        Router::new().route("/webhooks/payments", post(receive)).with_state(self)
    }

    /// Books the payment and remembers the delivery, or does neither.
    async fn book(&self, delivery: &str, payment: Payment) -> Result<(), InboxError<sqlx::Error>> {
        let mut tx = begin_immediate(&self.pool).await.map_err(InboxError::Database)?;
        if self.inbox.once(&mut *tx, delivery).await?.is_first() {
            let booking = sqlx::query("INSERT INTO booking (account, cents) VALUES (?, ?)");
            let booked = booking.bind(payment.account).bind(payment.cents).execute(&mut *tx).await;
            booked.map_err(InboxError::Database)?;
        }
        tx.commit().await.map_err(InboxError::Database)
    }
}

/// Answers with success for the first delivery and for all later ones: the provider stops calling.
async fn receive(
    State(payments): State<Payments>,
    headers: HeaderMap,
    Json(payment): Json<Payment>,
) -> Result<StatusCode, (StatusCode, String)> {
    let Some(delivery) = headers.get("webhook-id").and_then(|id| id.to_str().ok()) else {
        return Err((StatusCode::BAD_REQUEST, "the header `webhook-id` is missing".to_owned()));
    };
    match payments.book(delivery, payment).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error @ InboxError::InvalidId { .. }) => Err((StatusCode::BAD_REQUEST, error.to_string())),
        // The provider calls again.
        Err(error) => {
            tracing::error!(delivery, "{error}");
            Err((StatusCode::SERVICE_UNAVAILABLE, "not booked; try again".to_owned()))
        }
    }
}
