/// The tests that are the same on every database. `$kept` is what `kept()` gives, and `$pool` its pool.
macro_rules! alike {
    ($kept:ident => $pool:expr) => {
        #[tokio::test]
        async fn an_outbox_takes_every_form_of_a_transaction_and_refuses_another_database() {
            use pillarbox_core::write::WriteError::WrongDatabase;

            let $kept = kept().await;
            let store = pillarbox_memory::MemoryStore::new();
            pillarbox_core::store::Store::migrate(&store).await.expect("migrates");
            let outbox = pillarbox_engine::run::Outbox::single_node(store)
                .handle_all(|_: pillarbox_core::handle::Delivery| async {})
                .start()
                .await
                .expect("starts");
            let event = || pillarbox_core::event::Envelope::json("order.placed", "{}").expect("valid");
            let mut tx = outbox.begin($pool).await.expect("begins");
            let refused = [outbox.write(&mut tx, event()).await, outbox.write(&mut *tx, event()).await];
            for refused in refused {
                assert!(matches!(refused, Err(WrongDatabase { .. })), "{refused:?}");
            }
            tx.execute("SELECT 1").await.expect("the transaction was not touched");
            tx.commit().await.expect("commits");
            outbox.shutdown().await;
        }

        #[tokio::test]
        async fn a_commit_tells_what_it_committed_of_savepoints_and_nested_transactions() {
            let $kept = kept().await;
            let mut tx = Begin::begin($pool).await.expect("begins");
            tx.execute(keep(1)).await.expect("inserts");
            tx.execute("SAVEPOINT undone").await.expect("sets it");
            tx.execute(keep(2)).await.expect("inserts");
            tx.execute("ROLLBACK TO SAVEPOINT undone").await.expect("rolls back");
            let mut nested = tx.begin().await.expect("begins");
            nested.execute(keep(3)).await.expect("inserts");
            nested.rollback().await.expect("rolls back");
            let mut nested = tx.begin().await.expect("begins");
            nested.execute(keep(4)).await.expect("inserts");
            let mut inner = nested.begin().await.expect("begins");
            inner.execute(keep(5)).await.expect("inserts");
            drop(inner);
            nested.commit().await.expect("commits");
            let mut found = tx.commit_verified(&adapters::probe()).await.expect("commits");
            found.sort_by_key(|row| row.seq);
            assert_eq!(found, adapters::kept([1, 4]));
        }

        #[tokio::test]
        async fn a_guard_knows_its_connection_in_every_form() {
            let $kept = kept().await;
            let mut tx = Begin::begin($pool).await.expect("begins");
            let id = Connection::id(&tx);
            assert_eq!(Connection::id(&*tx), id);
            let nested = tx.begin().await.expect("begins");
            assert_eq!((Connection::id(&nested), Connection::id(&*nested)), (id, id));
        }

        /// A statement that keeps a row.
        fn keep(seq: i64) -> AssertSqlSafe<String> {
            AssertSqlSafe(adapters::keep(seq))
        }
    };
}

pub(crate) use alike;
