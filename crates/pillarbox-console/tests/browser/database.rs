use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use pillarbox_config::Loader;
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_core::store::{Admin as _, Store};
use pillarbox_engine::run::{Mode, Outbox};

/// A database of its own, by its address.
pub(crate) enum Database {
    Sqlite(String),
    Postgres(String),
    Mysql(String),
}

impl Database {
    /// Its store, with its tables made.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let url = match self {
            Self::Sqlite(file) => format!("sqlite://{file}"),
            Self::Postgres(url) | Self::Mysql(url) => url.clone(),
        };
        let settings = Loader::new().set("store.url", url).load().expect("settings");
        let store = settings.connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store
    }

    /// Inserts an event as another program does.
    pub(crate) async fn insert(&self, id: &str, event_type: &str, key: &str) {
        let headers = r#"{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "authorization": "Bearer hunter2"}"#;
        let payload = r#"{"order_id": "o-1042", "total_cents": 1999, "lines": [{"sku": "mug-blue", "quantity": 2}], "gift": false, "card": {"password": "hunter2"}}"#;
        let sql = format!(
            "INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, headers, payload) \
             VALUES ('{id}', '{event_type}', 'order', '{key}', 'acme', '{headers}', '{payload}')"
        );
        match self {
            Self::Sqlite(file) => pillarbox_programtest::execute(file, &sql).await,
            Self::Postgres(url) => {
                pillarbox_programtest::connect(url).await.0.batch_execute(&sql).await.expect("inserts");
            }
            Self::Mysql(url) => pillarbox_programtest::mysql(url).await.query_drop(sql).await.expect("inserts"),
        }
    }

    /// Fills the table: events of each state, and keys that are blocked.
    pub(crate) async fn fill(&self, store: &Arc<dyn Store>) {
        for number in 0..70 {
            let (event_type, key) = match number % 10 {
                0 => ("invoice.sent", "customer-7"),
                1..=3 => ("order.placed", "customer-12"),
                4 => ("order.held", "customer-31"),
                _ => ("order.declined", &*format!("customer-{}", 100 + number)),
            };
            self.insert(&format!("event-{number:03}"), event_type, key).await;
        }
        let outbox = Outbox::builder(Mode::Partitioned)
            .store(Arc::clone(store))
            .handle_all(handle)
            .start()
            .await
            .expect("starts");
        let settled = async {
            while store.backlog().await.expect("counts").due > 6 || store.counts().await.expect("counts").dead < 35 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settled).await.expect("each has had its attempt");
        outbox.shutdown().await;
    }
}

/// A handler that declines some, and puts others off.
async fn handle(delivery: Delivery) -> Result<(), HandlerError> {
    match delivery.event_type() {
        "order.declined" => Err(HandlerError::unrecoverable("the payment provider answered 422: card declined")),
        "order.held" => {
            Err(HandlerError::retry_after(Duration::from_secs(3_600), "the warehouse did not answer within 30 s"))
        }
        _ => Ok(()),
    }
}
