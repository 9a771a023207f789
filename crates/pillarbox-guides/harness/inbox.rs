mod once {
    use crate::shop::*;
    use pillarbox::{Inbox, PostgresStore};

    struct Message;

    impl Message {
        async fn ack(&self) -> Result<(), BoxError> {
            Ok(())
        }
    }

    async fn consume(
        store: PostgresStore,
        pool: sqlx::PgPool,
        message_id: &str,
        message: Message,
    ) -> Result<(), BoxError> {
        //~ docs/inbox.md ~ let inbox = Inbox::new(store, "billing")?;
        Ok(())
    }
}

mod ledger {
    use crate::shop::*;
    use pillarbox::{Delivery, Inbox, MemoryStore, Outbox, PostgresStore};

    async fn register(store: MemoryStore, ledger_url: &str, ledger_pool: sqlx::PgPool) -> Result<(), BoxError> {
        let handler = {
            //~ docs/inbox.md ~ let ledger = Inbox::new(
        };
        let outbox = Outbox::single_node(store).handle_all(handler);
        Ok(())
    }
}
