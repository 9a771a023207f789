mod later {
    use crate::shop::*;
    use pillarbox::{Envelope, Event, Outbox};

    async fn write(
        outbox: &Outbox,
        pool: sqlx::PgPool,
        body: OrderPlaced,
        order_placed: OrderPlaced,
    ) -> Result<(), BoxError> {
        let mut tx = outbox.begin(&pool).await?;
        //~ docs/scheduling.md ~ let reminder = Envelope::builder("order.reminder")
        Ok(())
    }
}

mod unique {
    use crate::shop::*;
    use pillarbox::{Envelope, Outbox};

    async fn write(outbox: &Outbox, pool: sqlx::PgPool, customer: i64, body: OrderPlaced) -> Result<(), BoxError> {
        let mut tx = outbox.begin(&pool).await?;
        //~ docs/scheduling.md ~ let report = Envelope::builder("report.wanted")
        Ok(())
    }
}

mod waiting {
    use crate::shop::*;
    use pillarbox::Outbox;
    use pillarbox::run::EventEnd;

    async fn wait(outbox: &Outbox, pool: sqlx::PgPool, order_placed: OrderPlaced) -> Result<(), BoxError> {
        //~ docs/waiting.md ~ match outbox.delivered(id)
        Ok(())
    }
}
