//! The interface of the service: placing an order and looking at it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pillarbox::{Event, Outbox};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::BoxError;

#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) pool: PgPool,
    pub(crate) outbox: Outbox,
}

/// The event that tells other services of an order. Its names are part of the service's interface and outlive any
/// renaming here.
#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
pub(crate) struct OrderPlaced {
    pub(crate) order_id: i64,
    pub(crate) customer: String,
    pub(crate) total_cents: i64,
}

#[derive(Debug, Deserialize)]
struct NewOrder {
    customer: String,
    total_cents: i64,
}

#[derive(Debug, Serialize)]
struct Placed {
    order_id: i64,
}

#[derive(Debug, Serialize)]
struct Order {
    customer: String,
    total_cents: i64,
    receipt_sent: bool,
}

pub(crate) fn routes(shop: Shop) -> Router {
    Router::new().route("/orders", post(place)).route("/orders/{id}", get(show)).with_state(shop)
}

async fn place(State(shop): State<Shop>, Json(order): Json<NewOrder>) -> Result<(StatusCode, Json<Placed>), Problem> {
    if order.total_cents < 0 {
        return Err(Problem::Refused("an order cannot cost less than nothing"));
    }
    // The guard is sqlx's transaction. It rolls back when it is dropped, and tells the outbox when it commits.
    let mut tx = shop.outbox.begin(&shop.pool).await?;
    let order_id = sqlx::query_scalar("insert into orders (customer, total_cents) values ($1, $2) returning id")
        .bind(&order.customer)
        .bind(order.total_cents)
        .fetch_one(&mut *tx)
        .await?;
    let placed = OrderPlaced { order_id, customer: order.customer, total_cents: order.total_cents };
    shop.outbox.write(&mut tx, &placed).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(Placed { order_id })))
}

async fn show(State(shop): State<Shop>, Path(order_id): Path<i64>) -> Result<Json<Order>, Problem> {
    let found: Option<(String, i64, bool)> = sqlx::query_as(
        "select customer, total_cents, exists (select from receipts where order_id = orders.id)
         from orders where id = $1",
    )
    .bind(order_id)
    .fetch_optional(&shop.pool)
    .await?;
    let (customer, total_cents, receipt_sent) = found.ok_or(Problem::Missing)?;
    Ok(Json(Order { customer, total_cents, receipt_sent }))
}

/// The reason why a request failed.
#[derive(Debug)]
enum Problem {
    Missing,
    Refused(&'static str),
    Internal(BoxError),
}

impl<E: Into<BoxError>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Internal(error.into())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::Missing => StatusCode::NOT_FOUND.into_response(),
            Self::Refused(why) => (StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
            Self::Internal(error) => {
                // What went wrong inside is for the log, not for the client.
                tracing::error!(error, "a request failed");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
