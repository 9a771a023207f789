mod namastack {
    mod shop {
        #[derive(Debug, thiserror::Error)]
        #[error("the bank refused it")]
        pub struct BankError;

        #[derive(Debug, thiserror::Error)]
        #[error("the card was declined")]
        pub struct CardDeclined;
    }

    async fn migrated(pool: sqlx::PgPool) -> Result<(), pillarbox::error::BoxError> {
        use pillarbox::error::BoxError;
        use pillarbox::{Delivery, Event, Failure, Outcome, Retry, handler};
        use serde::{Deserialize, Serialize};
        use shop::{BankError, CardDeclined};

        //~ docs/migrating-from-namastack.md ~ #[handler(fallback = give_up)]
        Ok(())
    }
}

mod outbox_java {
    #[derive(Debug, thiserror::Error)]
    #[error("the mail server refused it")]
    pub struct MailError;

    async fn migrated(url: &str, pool: sqlx::PgPool) -> Result<(), pillarbox::error::BoxError> {
        use pillarbox::{Delivery, Event, Outbox, PostgresStore};
        use serde::{Deserialize, Serialize};

        let user_created: UserCreated = unimplemented!();
        //~ docs/migrating-from-outbox-java.md ~ struct UserCreated { id: String, name: String }
        Ok(())
    }
}
