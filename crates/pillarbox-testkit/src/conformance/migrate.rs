use std::sync::Arc;

use futures_util::future::try_join_all;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;
use tokio::task::JoinSet;

use crate::Harness;
use crate::events::{all, event, events, seqs_of};
use crate::run::{Db, Outcome};

/// A second migration leaves tables, rows and the record of migrations as they are.
pub(super) async fn migrate_twice_changes_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    store.migrate().await?;
    let written = event()?;
    db.write(vec![written.clone()]).await?;
    let before = (db.columns(written.id().as_str()).await?, record(db).await?);
    assert!(before.0.is_some());
    store.migrate().await?;
    assert_eq!((db.columns(written.id().as_str()).await?, record(db).await?), before);
    store.check().await?;
    assert_eq!(store.counts().await?.new, 1);
    Ok(())
}

/// The first and the last version on record, and how many there are.
async fn record<H: Harness>(db: &Db<H>) -> Result<Option<Vec<Option<String>>>, pillarbox_core::error::BoxError> {
    if !H::CAPABILITIES.sql {
        return Ok(None);
    }
    let migrations = db.table("migration");
    let columns = ["min(version)", "max(version)", "count(*)"].map(H::sql_text).join(", ");
    db.query(&format!("SELECT {columns} FROM {migrations}")).await
}

/// Nodes that start at the same time on an empty database all find the tables in place afterwards.
pub(super) async fn migrate_concurrently_succeeds_everywhere<H: Harness>(db: &Db<H>) -> Outcome {
    let stores = try_join_all((0..4).map(|_| db.connect())).await?;
    let mut tasks = JoinSet::new();
    for index in 0..12 {
        let store = Arc::clone(&stores[index % stores.len()]);
        tasks.spawn(async move {
            store.migrate().await?;
            store.check().await
        });
    }
    tasks.join_all().await.into_iter().collect::<Result<(), _>>()?;
    assert_eq!(db.write(events(3)?).await?.len(), 3);
    Ok(())
}

/// Tables of a later release are left alone, and the error says that it is the release that is too old.
pub(super) async fn migrate_refuses_a_newer_schema<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    store.migrate().await?;
    db.set_newer_schema(false).await?;
    let before = record(db).await?;
    for refused in [store.migrate().await, store.check().await] {
        let error = refused.err().ok_or("a newer schema was accepted")?;
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("newer"), "{error}");
    }
    assert_eq!(record(db).await?, before);
    Ok(())
}

/// Processes of this release that migrate at their start go on starting after a later release has migrated the tables.
pub(super) async fn migrate_leaves_a_newer_schema_that_is_compatible<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    store.migrate().await?;
    db.set_newer_schema(true).await?;
    let before = record(db).await?;
    store.migrate().await?;
    assert_eq!(record(db).await?, before);
    assert_eq!(db.write(events(2)?).await?, seqs_of(&store.fetch(&all()).await?));
    Ok(())
}

/// So do those that only check. A still later release on which this one cannot run is refused.
pub(super) async fn check_accepts_a_newer_schema_that_is_compatible<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    store.migrate().await?;
    db.set_newer_schema(true).await?;
    store.check().await?;
    let other = db.connect().await?;
    other.check().await?;
    db.set_newer_schema(false).await?;
    let error = store.check().await.err().ok_or("tables on which it cannot run were accepted")?;
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    assert!(error.to_string().contains("upgrade Pillarbox"), "{error}");
    Ok(())
}

/// The SQL for other migration tools makes the same tables, under the configured names.
pub(super) async fn migration_sql_names_the_configured_table<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let table = TableName::parse(&store.info().table)?;
    let sql = store.migration_sql();
    let names = [table.event().to_owned(), table.beside("node"), table.beside("partition")];
    for name in names.iter().map(String::as_str).chain(table.schema()) {
        assert!(sql.contains(name), "`{name}` is missing in: {sql}");
    }
    assert!(!sql.contains(['{', '}']), "a placeholder was left in: {sql}");
    db.execute(&sql).await?;
    store.check().await?;
    // A store that migrates by itself later on finds everything done.
    store.migrate().await?;
    assert_eq!(db.write(events(2)?).await?.len(), 2);
    Ok(())
}

/// Before the tables exist, a check fails and names a table that is missing and the way to make it.
pub(super) async fn check_names_the_missing_schema<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let error: StoreError = store.check().await.err().ok_or("the check passed on an empty database")?;
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    let text = error.to_string();
    let prefix = TableName::parse(&store.info().table)?.beside("");
    assert!(text.contains(&prefix) && text.contains("migrate"), "{text}");
    store.migrate().await?;
    store.check().await?;
    Ok(())
}
