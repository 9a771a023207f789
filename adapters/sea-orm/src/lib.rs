//! Writes Pillarbox events in [SeaORM](https://docs.rs/sea-orm) transactions, on PostgreSQL, MySQL, MariaDB and SQLite.
//!
//! Features: `mysql`, `postgres`, `sqlite`.
//!
//! ```no_run
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use pillarbox_sea_orm as _;
//! use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, TransactionTrait};
//!
//! # async fn place(outbox: &Outbox, db: &DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let mut tx = outbox.begin(db).await?;
//! tx.execute_unprepared("INSERT INTO orders (id) VALUES ('o-1')").await?; // or `order.insert(&*tx)`
//! outbox.write(&mut tx, event).await?;
//! tx.commit().await?;
//!
//! // Or a transaction of your own.
//! let mut tx = db.begin().await?;
//! let receipt = outbox.write(&mut tx, Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?).await?;
//! outbox.commit(tx, receipt).await?;
//!
//! // In a function that was handed a reference, as in the closure of `db.transaction(…)`.
//! async fn note(outbox: &Outbox, tx: &DatabaseTransaction, event: Envelope) -> Result<(), Box<dyn std::error::Error>> {
//!     outbox.write(&mut &*tx, event).await?;
//!     Ok(())
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The `use … as _` makes the compiler look into this crate, nothing of which needs a name; a crate that depends on `pillarbox`
//! with a feature such as `sea-orm-postgres` does without.
//!
//! Before `COMMIT` it is made sure that the transaction can be committed, and asked, in a round trip of its own, which rows were
//! not rolled back to a savepoint. What is written in a nested transaction of SeaORM's own is delivered from the table, within
//! some tens of milliseconds, since nothing tells it apart from a transaction of its own.
//!
//! End nested transactions before you commit: where one is open, SeaORM's own commit ends that one alone, and says that it has committed. The commit of a
//! guard is an error then, which says what was committed. `Outbox::commit` commits as SeaORM does, a nested transaction as well, and has the rows looked
//! up before they are delivered from memory.
//!
//! A connection is no place to write events, and does not type-check:
//!
//! ```compile_fail,E0277
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_sea_orm as _;
//! async fn place(outbox: &Outbox, db: &mut sea_orm::DatabaseConnection, event: Envelope) {
//!     let _ = outbox.write(db, event).await;
//! }
//! ```
//!
//! # Cancellation
//!
//! A transaction that is dropped is rolled back before its connection does anything else. `BEGIN` is seen through even if the
//! future of `Outbox::begin` is dropped; SeaORM's own `begin` is not, and may leave a transaction open in the pool (read in
//! SeaORM 2.0.4 on sqlx 0.9.0). On MySQL a call that is dropped while its statement is prepared can leave the connection waiting for
//! ever (read in sqlx-mysql 0.9.0): let calls end, in a task of their own where the caller may be dropped.

mod array;
mod begin;
mod insert;

pub use begin::OutermostTransaction;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), of a
/// [`DatabaseConnection`](sea_orm::DatabaseConnection).
///
/// ```
/// # use pillarbox_core::handle::{Delivery, in_transaction};
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore as PostgresStore;
/// # use pillarbox_sea_orm::SeaOrmTx;
/// use sea_orm::ConnectionTrait as _;
///
/// async fn book(_: Delivery, tx: SeaOrmTx) -> Result<(), sea_orm::DbErr> {
///     tx.execute_unprepared("INSERT INTO booking (amount) VALUES (1)").await?;
///     Ok(())
/// }
///
/// # async fn start(store: PostgresStore, db: sea_orm::DatabaseConnection) {
/// let outbox = Outbox::single_node(store).handle_type("payment.received", in_transaction(db, book));
/// # }
/// ```
pub type SeaOrmTx = pillarbox_core::handle::HandlerTransaction<OutermostTransaction, SeaOrm>;

/// The marker that brings SeaORM's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct SeaOrm;
