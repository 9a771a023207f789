//! The interface of the service.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use pillarbox::Outbox;
use sqlx::PgPool;

use crate::{BoxError, NewOrder, place};

/// The state that requests share.
#[derive(Debug, Clone)]
pub struct Shop {
    /// The service's own connections.
    pub pool: PgPool,
    /// Its outbox.
    pub outbox: Outbox,
}

/// The pages of the service.
pub fn routes(shop: Shop) -> Router {
    Router::new().route("/orders", post(post_order)).with_state(shop)
}

async fn post_order(State(shop): State<Shop>, Json(order): Json<NewOrder>) -> (StatusCode, String) {
    match in_one_transaction(&shop, &order).await {
        Ok(order_id) => (StatusCode::CREATED, order_id.to_string()),
        Err(_) => (StatusCode::UNPROCESSABLE_ENTITY, "the order was refused".to_owned()),
    }
}

async fn in_one_transaction(shop: &Shop, order: &NewOrder) -> Result<i64, BoxError> {
    let mut tx = shop.outbox.begin(&shop.pool).await?;
    let order_id = place(&shop.outbox.writer(), &mut tx, order).await?;
    tx.commit().await?;
    Ok(order_id)
}
