mod sqlx_driver {
    use crate::shop::*;
    use pillarbox::Outbox;

    async fn write(outbox: &Outbox, pool: sqlx::PgPool, event: OrderPlaced) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ sqlx::query(
        Ok(())
    }
}

mod sea_orm_driver {
    use crate::shop::*;
    use pillarbox::Outbox;
    use sea_orm::{ActiveModelTrait, DatabaseConnection};

    mod order {
        use sea_orm::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
        #[sea_orm(table_name = "orders")]
        pub struct Model {
            #[sea_orm(primary_key)]
            pub id: i64,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    async fn write(
        outbox: &Outbox,
        db: DatabaseConnection,
        order: order::ActiveModel,
        event: OrderPlaced,
    ) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ order.insert(&*tx).await?;
        Ok(())
    }
}

mod deadpool {
    use crate::shop::*;
    use pillarbox::Outbox;

    async fn write(outbox: &Outbox, pool: deadpool_postgres::Pool, event: OrderPlaced) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ tx.execute("INSERT INTO orders …", &[]).await?;
        Ok(())
    }
}

mod tables {
    diesel::table! {
        orders (id) {
            id -> BigInt,
        }
    }

    diesel::table! {
        booking (payment_id) {
            payment_id -> Text,
        }
    }

    #[derive(diesel::Insertable)]
    #[diesel(table_name = orders)]
    pub struct Order {
        pub id: i64,
    }
}

mod diesel_async_driver {
    use super::tables::{Order, orders};
    use crate::shop::*;
    use diesel_async::pooled_connection::deadpool::Pool;
    use diesel_async::{AsyncPgConnection, RunQueryDsl};
    use pillarbox::Outbox;

    async fn write(
        outbox: &Outbox,
        pool: Pool<AsyncPgConnection>,
        order: Order,
        event: OrderPlaced,
    ) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ diesel::insert_into(orders::table).values(&order).execute(&mut *tx).await?;
        Ok(())
    }
}

mod diesel_driver {
    use super::tables::{Order, booking, orders};
    use crate::shop::*;
    use diesel::r2d2::{ConnectionManager, Pool};
    use diesel::{Connection, ExpressionMethods, PgConnection, RunQueryDsl};
    use pillarbox::{Delivery, Outbox, PostgresStore, blocking, in_transaction};

    type PgPool = Pool<ConnectionManager<PgConnection>>;

    async fn guard(outbox: &Outbox, pool: PgPool, order: Order, event: OrderPlaced) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ let outbox = outbox.clone();
        Ok(())
    }

    fn own_transaction(
        outbox: &Outbox,
        conn: &mut PgConnection,
        order: Order,
        event: OrderPlaced,
    ) -> Result<(), BoxError> {
        //~ docs/drivers.md ~ let receipt = conn.transaction(|conn| {
        Ok(())
    }

    //~ docs/drivers.md ~ fn book(payment: PaymentReceived

    fn register(store: PostgresStore, pool: PgPool) {
        let outbox = Outbox::single_node(store).handle(in_transaction(move || pool.get(), blocking(book)));
    }
}
