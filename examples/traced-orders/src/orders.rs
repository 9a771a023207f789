//! The interface of the service: placing an order.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use pillarbox::error::BoxError;
use pillarbox::{Event, Outbox};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use tracing::instrument;

#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) pool: SqlitePool,
    pub(crate) outbox: Outbox,
}

/// The event that tells other services of an order.
#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct OrderPlaced {
    order_id: i64,
    total_cents: i64,
}

#[derive(Debug, Deserialize)]
struct NewOrder {
    total_cents: i64,
}

#[derive(Debug, Serialize)]
struct Placed {
    order_id: i64,
}

pub(crate) fn routes(shop: Shop) -> Router {
    Router::new().route("/orders", post(place)).with_state(shop)
}

pub(crate) async fn create_table(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    let orders = "create table if not exists orders (id integer primary key, total_cents integer not null)";
    sqlx::query(orders).execute(pool).await.map(|_| ())
}

/// The span in which the event is written: the trace goes on from here, in whatever process delivers it.
#[instrument(name = "POST /orders", skip_all, fields(otel.kind = "server"))]
async fn place(
    State(shop): State<Shop>,
    Json(order): Json<NewOrder>,
) -> Result<(StatusCode, Json<Placed>), StatusCode> {
    let written = write(&shop, order.total_cents).await;
    let order_id = written.map_err(|error| {
        tracing::error!(error, "an order was not placed");
        StatusCode::INTERNAL_SERVER_ERROR
    })?;
    Ok((StatusCode::CREATED, Json(Placed { order_id })))
}

async fn write(shop: &Shop, total_cents: i64) -> Result<i64, BoxError> {
    let mut tx = shop.outbox.begin(&shop.pool).await?;
    let insert = sqlx::query_scalar("insert into orders (total_cents) values (?) returning id").bind(total_cents);
    let order_id = insert.fetch_one(&mut *tx).await?;
    shop.outbox.write(&mut tx, &OrderPlaced { order_id, total_cents }).await?;
    tx.commit().await?;
    Ok(order_id)
}
