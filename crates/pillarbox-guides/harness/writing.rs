mod later {
    use crate::shop::*;
    use pillarbox::{Envelope, Event, Outbox};

    async fn write(
        outbox: &Outbox,
        pool: sqlx::PgPool,
        order: OrderPlaced,
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

    async fn write(outbox: &Outbox, pool: sqlx::PgPool, customer: i64, order: OrderPlaced) -> Result<(), BoxError> {
        let mut tx = outbox.begin(&pool).await?;
        //~ docs/scheduling.md ~ let report = Envelope::builder("report.wanted")
        Ok(())
    }
}

mod waiting {
    use crate::shop::*;
    use pillarbox::{Outbox, Outcome};
    use pillarbox::run::EventEnd;

    async fn wait(outbox: &Outbox, pool: sqlx::PgPool, order_placed: OrderPlaced) -> Result<(), BoxError> {
        //~ docs/waiting.md ~ match outbox.delivered(id)
        Ok(())
    }

    async fn report(number: u64) -> Result<Outcome, BoxError> {
        //~ docs/waiting.md ~ Ok(Outcome::delivered_as(
    }
}

mod attributes {
    use pillarbox::Event;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Shop {
        id: String,
    }

    //~ docs/codecs.md ~ #[event(name = "order.placed", aggregate = "order", key = order_id, tenant
}
