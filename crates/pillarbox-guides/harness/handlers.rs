mod signature {
    use crate::shop::*;
    use pillarbox::{Delivery, HandlerError};

    //~ docs/handlers.md ~ async fn send_receipt(event: OrderPlaced, delivery: Delivery) -> Result<(), HandlerError> { … }
}

mod list {
    use crate::shop::*;
    use pillarbox::handle::{Registration, on};
    use pillarbox::{MemoryStore, Outbox};

    //~ docs/handlers.md ~ fn handlers(mails: Mails) -> Vec<Registration> {

    fn register(store: MemoryStore, smtp: Mails) {
        let outbox = Outbox::single_node(store).handlers(handlers(smtp));
    }
}

mod attribute {
    use crate::shop::{BoxError, Duration, OrderPlaced, PAUSE, SmtpError, by_letter};
    use pillarbox::{MemoryStore, Outbox, handler};
    use pillarbox::retry::Retry;

    //~ docs/handlers.md ~ #[handler(name = "mailer", retry = Retry::fixed(PAUSE).max_retries(3), fallback = by_letter)]

    fn register(store: MemoryStore) {
        let outbox = Outbox::single_node(store).handler(send_receipt);
    }
}

mod methods {
    use crate::shop::*;
    use pillarbox::{Delivery, MemoryStore, Outbox, handler, handlers};

    //~ docs/handlers.md ~ struct Mailer { smtp: SmtpClient }

    fn register(store: MemoryStore, smtp: SmtpClient) {
        let outbox = Outbox::single_node(store.clone()).handlers(Mailer { smtp: smtp.clone() });
        let mailer = Arc::new(Mailer { smtp });
        let outbox = Outbox::single_node(store).handlers(Arc::clone(&mailer).handlers());
    }
}

mod transaction {
    use crate::shop::{PaymentBooked, PaymentReceived};
    use pillarbox::{Outbox, PostgresStore};

    //~ docs/handlers.md ~ use pillarbox::adapters::sqlx::PgTx;

    fn register(store: PostgresStore, pool: sqlx::PgPool) {
        let outbox = Outbox::single_node(store).handle(in_transaction(pool, book));
    }
}

mod accepts {
    use crate::shop::*;
    use pillarbox::handle::on;

    fn by_envelope_and_by_event() {
        //~ each docs/handlers.md ~ on(notify_partner).accepts(|event| event.tenant_id() == Some("partner"))
    }
}

mod dead {
    use crate::shop::*;
    use pillarbox::Outbox;
    use pillarbox::maintain::DeadFilter;

    async fn replay(outbox: &Outbox) -> Result<(), BoxError> {
        //~ docs/handlers.md ~ let failed = DeadFilter::new().event_type("order.placed").tenant("acme");
        Ok(())
    }
}

mod limits {
    use crate::shop::*;
    use pillarbox::handle::{Rate, on};

    fn limited() {
        //~ docs/handlers.md ~ let partner = on(notify_partner).concurrency(4).rate(Rate::per_second(100).burst(20));
    }
}
