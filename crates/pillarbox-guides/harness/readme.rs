use crate::shop::*;
use pillarbox::{Delivery, HandlerError, Outbox, PostgresStore, Store};

async fn own_transaction(outbox: &Outbox, pool: sqlx::PgPool, event: OrderPlaced) -> Result<(), BoxError> {
    //~ README.md ~ let mut tx = pool.begin().await?;
    Ok(())
}

async fn postgres(pool: sqlx::PgPool) -> Result<(), BoxError> {
    //~ README.md ~ // pillarbox = { path = "…", features = ["postgres", "sqlx-postgres"] }
    Ok(())
}

mod signature {
    use crate::shop::*;
    use pillarbox::{Delivery, HandlerError};

    //~ README.md ~ async fn send_receipt(event: OrderPlaced, delivery: Delivery) -> Result<(), HandlerError>
    {
        Ok(())
    }
}
