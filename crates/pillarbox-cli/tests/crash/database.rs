//! The databases that processes can share, as far as the scenarios look into them.

use std::future::Future;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Pool};
use pillarbox::event::Stamp;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::support;

/// A database of a scenario's own, with an outbox in it. What it is asked is SQL that all of them understand.
#[async_trait]
pub(crate) trait Database: Send + Sync {
    /// What a relay is given as its store.
    fn url(&self) -> &str;

    /// Runs a statement.
    async fn execute(&self, sql: &str);

    /// The first column of all rows.
    async fn texts(&self, sql: &str) -> Vec<String>;

    /// The count that is the only column of the only row.
    async fn count(&self, sql: &str) -> i64;
}

impl dyn Database + '_ {
    /// Inserts events as another program would: with the least they need. Their ids are the numbers.
    pub(crate) async fn insert(&self, numbers: Range<u32>) {
        self.insert_values("event_type, payload", numbers.map(|number| format!("('{number}','t','{{}}')"))).await;
    }

    /// As [`insert`](Self::insert), of so many keys in turn.
    pub(crate) async fn insert_of_keys(&self, numbers: Range<u32>, keys: u32) {
        let rows = numbers.map(|number| format!("('{number}','t','{{}}','{}')", number % keys));
        self.insert_values("event_type, payload, ordering_key", rows).await;
    }

    async fn insert_values(&self, columns: &str, rows: impl Iterator<Item = String> + Send) {
        let rows: Vec<_> = rows.collect();
        self.execute(&format!("INSERT INTO outbox_event (event_id, {columns}) VALUES {}", rows.join(","))).await;
    }

    /// How often each partition has changed its owner: the first owner counts.
    pub(crate) async fn epochs(&self) -> [u32; 256] {
        // Behind a dot it is a name, also where it is a reserved word.
        let epochs = "SELECT concat(outbox_partition.partition, ' ', epoch) FROM outbox_partition";
        let mut all = [0; 256];
        for text in self.texts(epochs).await {
            let (partition, epoch) = text.split_once(' ').unwrap();
            all[partition.parse::<usize>().unwrap()] = epoch.parse().unwrap();
        }
        all
    }

    /// Asks until the count is as wanted.
    pub(crate) async fn wait_for(&self, sql: &str, wanted: i64) {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let count = self.count(sql).await;
            if count == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{sql}: it is {count} and does not become {wanted}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

struct Postgres {
    url: String,
    client: Client,
    _connection: JoinHandle<()>,
}

#[async_trait]
impl Database for Postgres {
    fn url(&self) -> &str {
        &self.url
    }

    async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?}"));
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.client.query(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn count(&self, sql: &str) -> i64 {
        support::count(&self.client, sql).await
    }
}

/// Runs a scenario on PostgreSQL.
pub(crate) async fn postgres<F: Future<Output = ()> + Send + 'static>(
    scenario: impl FnOnce(Arc<dyn Database>) -> F + Send + 'static,
) {
    support::with_postgres(|url| async move {
        migrate(&url).await;
        let (client, connection) = support::connect(&url).await;
        scenario(Arc::new(Postgres { url, client, _connection: connection })).await;
    })
    .await;
}

struct MariaDb {
    url: String,
    pool: Pool,
}

impl MariaDb {
    async fn connection(&self) -> Conn {
        self.pool.get_conn().await.expect("a connection")
    }
}

#[async_trait]
impl Database for MariaDb {
    fn url(&self) -> &str {
        &self.url
    }

    async fn execute(&self, sql: &str) {
        self.connection().await.query_drop(sql).await.unwrap_or_else(|error| panic!("{error}"));
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        self.connection().await.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    async fn count(&self, sql: &str) -> i64 {
        let count = self.connection().await.query_first(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        count.unwrap_or_else(|| panic!("{sql}: no row"))
    }
}

/// Runs a scenario on MariaDB, in a database of its own, which is dropped afterwards whatever happens.
pub(crate) async fn mariadb<F: Future<Output = ()> + Send + 'static>(
    scenario: impl FnOnce(Arc<dyn Database>) -> F + Send + 'static,
) {
    let server =
        std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
    let admin = Pool::new(server.as_str());
    let mut connection = admin.get_conn().await.unwrap_or_else(|error| {
        panic!(
            "these tests need MariaDB and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_MYSQL_URL=mysql://USER@HOST:PORT/DATABASE"
        )
    });
    let name = format!("pillarbox_cli_{}", Stamp::system().next_id()).to_ascii_lowercase();
    connection.query_drop(format!("CREATE DATABASE {name}")).await.expect("the test user may create databases");
    let url = support::database_url(&server, &name);
    let options = OptsBuilder::from_opts(Opts::from_url(&url).expect("a URL")).prefer_socket(false);
    let pool = Pool::new(options);
    let run = async move {
        migrate(&url).await;
        scenario(Arc::new(MariaDb { url, pool })).await;
    };
    let outcome = JoinSet::from_iter([run]).join_next().await;
    connection.query_drop(format!("DROP DATABASE {name}")).await.expect("the database can be dropped");
    if let Some(Err(error)) = outcome {
        resume_unwind(error.into_panic());
    }
}

async fn migrate(url: &str) {
    let ended = support::run_async(&["migrate", "--store", url]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
