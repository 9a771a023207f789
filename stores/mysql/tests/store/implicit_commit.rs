//! Some statements end the transaction that they are run in, which the driver does not notice.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use crate::support::with_db;
use mysql_async::prelude::Queryable as _;
use pillarbox_core::write::{Begin as _, Finish};

/// A user who repeated all of it would have the rows twice.
#[tokio::test]
async fn rows_that_a_statement_has_committed_are_not_said_to_be_rolled_back() {
    with_db(async |db| {
        db.execute("CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)").await;
        let mut transaction = (&db.pool).begin().await.expect("begins");
        transaction.query_drop("INSERT INTO orders VALUES ()").await.expect("inserts");
        transaction.query_drop("CREATE TABLE invoices (id BIGINT)").await.expect("creates");
        let error = Finish::commit(transaction).await.expect_err("nothing is left to commit").to_string();
        assert_eq!(db.text("SELECT CAST(COUNT(*) AS CHAR) FROM orders").await.as_deref(), Some("1"));
        for part in ["no transaction is open", "has committed it", "before you repeat", "begin a new one"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    })
    .await;
}
