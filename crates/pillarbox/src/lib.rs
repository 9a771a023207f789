//! A transactional outbox: a service writes its business rows and its events in one database transaction; Pillarbox
//! delivers every committed event to its handler, at least once.
//!
//! # Quickstart
//!
//! On SQLite, with the default features. For PostgreSQL take [`PostgresStore`], for MySQL and MariaDB [`MysqlStore`], and a
//! pool of your driver; all else is the same.
//!
#![cfg_attr(all(feature = "macros", feature = "sqlite"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "macros", feature = "sqlite")), doc = "```ignore")]
//! use pillarbox::{Delivery, Event, HandlerError, Outbox, SqliteStore, Store};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Event)]
//! #[event(name = "order.placed", aggregate = "order", key = order_id)]
//! struct OrderPlaced {
//!     order_id: String,
//!     total_cents: i64,
//! }
//!
//! // May be called again for the same event: deduplicate by `delivery.id()` where that matters.
//! async fn send_receipt(event: OrderPlaced, delivery: Delivery) -> Result<(), HandlerError> {
//!     println!("{}: {} cents, attempt {}", event.order_id, event.total_cents, delivery.attempt());
//!     Ok(())
//! }
//!
//! # async fn quickstart() -> Result<(), Box<dyn std::error::Error>> {
//! let store = SqliteStore::open("shop.db").await?;
//! store.migrate().await?;
//! let pool = store.writer().clone(); // SQLite has one writer at a time; with PostgreSQL, a pool of your own
//! sqlx::query("create table if not exists orders (id text)").execute(&pool).await?;
//! let outbox = Outbox::single_node(store).handle(send_receipt).start().await?;
//!
//! // The event commits with the order, or neither does. The guard is the driver's transaction, rolls back when dropped, and
//! // hands the events that it committed to their handlers.
//! let mut tx = outbox.begin(&pool).await?;
//! sqlx::query("insert into orders values ('o-1')").execute(&mut *tx).await?;
//! outbox.write(&mut tx, &OrderPlaced { order_id: "o-1".into(), total_cents: 1999 }).await?;
//! tx.commit().await?;
//!
//! // Or a transaction of your own, committed through the outbox. Committed as usual, its events are found in the table.
//! let mut tx = pool.begin().await?;
//! sqlx::query("insert into orders values ('o-2')").execute(&mut *tx).await?;
//! let receipt = outbox.write(&mut *tx, &OrderPlaced { order_id: "o-2".into(), total_cents: 2499 }).await?;
//! outbox.commit(tx, receipt).await?;
//!
//! outbox.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What is guaranteed
//!
//! | Promised | Not promised |
//! |---|---|
//! | An event is delivered if and only if it was committed, its payload byte for byte. | Exactly-once end to end: deduplicate by [`Delivery::id`]. |
//! | It is delivered at least once, or DEAD with the reason, across crashes; across a failover or restore, if the database still has it. | Order, except in [`Outbox::ordered`], and per key and handler in [`Outbox::partitioned`]. |
//! | It is delivered again only after a failure of its handler, a process, the database or the connection to it, a deferral, a replay, or a lease or time limit that ran out. | Distributed transactions: events live in the database of the business rows. |
//! | Once another node has taken over a node's events, the first one can no longer change them. | |
//!
//! The table is the truth. Queues, wake-ups and receipts are hints: losing one costs time, never an event.
//!
//! # Handlers
//!
//! A handler is an async function or closure of `(Payload)`, `(Payload, Delivery)` or `(Delivery)`; the last is registered
//! by name with [`handle_type`](run::SingleNode::handle_type) or for everything else with
//! [`handle_all`](run::SingleNode::handle_all). It returns `()`, an [`Outcome`], `Result<(), E>` or `Result<Outcome, E>`.
//! Every error is tried again with backoff unless it is a [`HandlerError`] that says otherwise; so is a panic. What is
//! not async goes through [`blocking`].
//!
//! Several handlers of one event have [names](handle::Registration::named): the event is written once
//! for each of them, and each has its own retries. A name, a [`Retry`] policy and a fallback stand beside a handler in a
//! [`Registration`](handle::Registration), or on the function itself in `#[handler(…)]`.
//!
//! # Features
//!
//! | Feature | Default | What it adds |
//! |---|---|---|
//! | `macros` | yes | `#[derive(Event)]`, `#[handler]`, `#[handlers]` |
//! | `sqlite` | yes | [`SqliteStore`]; brings `sqlx-sqlite` |
//! | `memory` | yes | [`MemoryStore`], for tests |
//! | `postgres` | | [`PostgresStore`] |
//! | `axum` | | [`axum`]: health, status and metrics as a router of axum |
//! | `config` | | [`config`]: settings from a file and the environment |
//! | `mysql` | | [`MysqlStore`], for MySQL and MariaDB |
//! | `otel` | | W3C trace context flows by itself: a handler's span is a child of its writer's |
//! | `prost` | | events whose payload is Protobuf, `#[event(codec = prost)]` |
//! | `sqlx-sqlite` | | [`Outbox::write`] and [`Outbox::begin`] on sqlx's SQLite transactions and pools |
//! | `sqlx-postgres` | | the same on sqlx's PostgreSQL transactions and pools |
//! | `sqlx-mysql` | | the same on sqlx's MySQL transactions and pools |
//! | `tokio-postgres` | | the same on tokio-postgres and deadpool-postgres |
//! | `mysql-async` | | the same on mysql_async |
//! | `sea-orm-postgres`, `sea-orm-mysql`, `sea-orm-sqlite` | | the same on SeaORM 2 |
//! | `diesel-async-postgres`, `diesel-async-mysql` | | the same on diesel-async |
//! | `diesel-postgres`, `diesel-sqlite`, `rusqlite` | | [`Outbox::blocking`] on diesel's own connections, and on rusqlite |
//! | `routes` | | [`routes`](https://docs.rs/pillarbox-routes): pass events on to brokers, by rules |
//! | `nats`, `rabbitmq`, `redis`, `mqtt`, `webhook`, `kafka`, `aws` | | the brokers for it |
//! | `kafka-ssl` | | Kafka with TLS and SCRAM, which need OpenSSL |
//!
//! Stores and adapters are chosen independently: the store is how Pillarbox reads the table, the adapter is the driver your service uses already.
//!
//! # Where things are
//!
//! The root has what a service needs daily, the modules have the rest:
//!
//! | Module | |
//! |---|---|
//! | [`event`], [`write`](mod@write) | the events of a service, and how they become rows |
//! | [`handle`], [`retry`] | handlers, their answers and their registration; when to try again |
//! | [`inbox`] | consumers: each message handled once |
//! | [`run`] | modes, settings and builders |
//! | [`maintain`], [`observe`] | DEAD events, blocked keys, nodes and purging; counters, metrics and health |
//! | [`error`] | errors, and their remedies |
//! | [`adapters`], [`publishers`], `routes`, `config`, `memory`, `axum` | the parts that features add |
//! | [`backend`] | the ports, for a database, a driver, a broker or a clock of your own |

#![cfg_attr(docsrs, feature(doc_cfg))]
// Without a feature its links have no target; the documentation is built with all of them.
#![cfg_attr(
    not(all(
        feature = "axum",
        feature = "config",
        feature = "memory",
        feature = "mysql",
        feature = "sqlite",
        feature = "postgres"
    )),
    allow(rustdoc::broken_intra_doc_links)
)]

pub use pillarbox_core::context::ContextProvider;
pub use pillarbox_core::event::{Envelope, Event, EventId};
pub use pillarbox_core::handle::{Delivery, Failure, HandlerError, Interceptor, Outcome, blocking, in_transaction};
pub use pillarbox_core::inbox::Inbox;
pub use pillarbox_core::retry::Retry;
pub use pillarbox_core::store::{Admin, Store, TableName};
pub use pillarbox_engine::run::Outbox;

#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use pillarbox_macros::{Event, handler, handlers};

#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use pillarbox_memory::{self as memory, MemoryStore};

#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use pillarbox_mysql::{MysqlOptions, MysqlStore};

#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use pillarbox_postgres::{PostgresOptions, PostgresStore};

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use pillarbox_sqlite::{SqliteOptions, SqliteStore};

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
#[doc(inline)]
pub use pillarbox_axum as axum;

#[cfg(feature = "config")]
#[cfg_attr(docsrs, doc(cfg(feature = "config")))]
#[doc(inline)]
pub use pillarbox_config as config;

/// The events that a service writes, their identity and their limits.
pub mod event {
    pub use pillarbox_core::clock::Timestamp;
    pub use pillarbox_core::event::{
        Codec, Decode, Encode, Envelope, EnvelopeBuilder, Event, EventId, GLOBAL_AGGREGATE, Headers, IntoEnvelope,
        PARTITIONS, Payload, Stamp, TypeName, codecs, limits, partition_of,
    };

    #[cfg(feature = "macros")]
    #[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
    pub use pillarbox_macros::Event;
}

/// Events become rows, on your transaction: its guard, its receipt and the hooks on a write.
pub mod write {
    pub use pillarbox_core::write::{
        BlockingTransaction, BlockingWriter, Connection, Skipped, Transaction, Writer, WriterHook, Written, insert,
    };
}

/// Your code for an event type: what it is given, what it answers, how it is registered.
pub mod handle {
    pub use pillarbox_core::handle::{
        BatchHandler, Blocking, BoxFuture, Delivery, EventHandler, EventKind, Failure, FailureReason, Fallback,
        Handler, HandlerError, HandlerErrorKind, HandlerTransaction, InTransaction, Interceptor, IntoBatchHandler,
        IntoDecision, IntoHandler, IntoObserved, IntoOutcome, OnDead, Outcome, Path, blocking, in_transaction, shape,
    };
    pub use pillarbox_engine::handlers::{
        Events, HandlerConfig, NotARate, Rate, Register, Registration, Unroutable, on, on_batch, on_type,
    };

    #[cfg(feature = "macros")]
    #[doc(hidden)]
    pub use pillarbox_core::handle::part;
}

/// The inbox of a consumer, which tells the first receipt of a message from all later ones.
pub mod inbox {
    pub use pillarbox_core::inbox::{BlockingInbox, CONSUMER_BYTES, Inbox, InboxError, MESSAGE_ID_BYTES, Once, purge};
}

/// The rules for retries: the wait, the number of attempts, and the errors that are tried again.
pub mod retry {
    pub use pillarbox_core::retry::{
        ErrorFilter, ExponentialBackoff, FixedBackoff, JitteredBackoff, LinearBackoff, Retry, RetryPolicy,
    };
}

/// An outbox that runs: its modes, its settings, and the builder of each mode.
pub mod run {
    pub use pillarbox_core::ownership::{NodeId, NodeName};
    pub use pillarbox_engine::follow::{DeliveredAs, EventEnd, Wait, WaitAll};
    pub use pillarbox_engine::run::{
        ClaimConfig, Config, DispatchConfig, Drained, FailingHead, FailingKey, MetricsConfig, Mode, MultiNode, Ordered,
        Outbox, OutboxBuilder, OwnershipConfig, Partitioned, PurgeConfig, RetryConfig, Role, SettleConfig,
        ShutdownConfig, SingleNode, TypePause, WakeUpConfig, WriterOnly, applies, kind, start_unless, why_ignored,
    };
}

/// The table, looked after by an operator or by code: DEAD and pending events, blocked keys, the backlog, nodes and purging. The methods that
/// take and answer these are those of [`Admin`].
pub mod maintain {
    pub use pillarbox_core::row::Status;
    pub use pillarbox_core::store::{
        Admin, Attributes, AuditEntry, AuditedAction, Backlog, Blocked, CANCELLED, Counts, DeadEvent, DeadFilter,
        EventFilter, EventPage, EventState, FIRST_PAGE, FailedAttempt, InboxConsumer, ListedEvent, NewPause,
        NodeFigures, NodeStatus, OperatorAction, PartitionBacklog, Pause, PauseChange, PauseKind, PendingEvent,
        PendingFilter, PendingState, Purge, Purgeable, Purged, Record, RowState,
    };
    pub use pillarbox_engine::maintain::{
        Changed, DeadEvents, DeadReason, DeadReasons, InvalidMoment, Moment, PauseNote, Pauses, PendingChange,
        PendingEvents, purge,
    };
}

/// The counters, the health and the metrics of an outbox.
pub mod observe {
    pub use pillarbox_engine::handlers::HandlerLimit;
    pub use pillarbox_engine::observe::{Health, Problem, Stats, buckets};
}

/// Errors, and their remedies.
pub mod error {
    pub use pillarbox_core::error::{BoxError, ConfigError, StoreError, StoreErrorKind};
    pub use pillarbox_core::event::InvalidEvent;
    pub use pillarbox_core::ownership::UnknownMode;
    pub use pillarbox_core::write::WriteError;
    pub use pillarbox_engine::follow::WaitError;
    pub use pillarbox_engine::handlers::DuplicateHandler;
    pub use pillarbox_engine::run::StartError;
}

/// The ports, for those who bring a database, a driver, a broker or a clock of their own. A service that takes those of this
/// crate needs none of it.
///
/// | Bring | Implement | Its tests |
/// |---|---|---|
/// | a database | [`Store`] and [`Admin`] | `pillarbox_testkit::conformance` |
/// | a driver | [`write::Connection`], [`Begin`](backend::write::Begin), [`Finish`](backend::write::Finish) | `pillarbox_testkit::adapter_tests` |
/// | a broker | [`publishers::Publisher`] | `pillarbox_testkit::publishers` |
/// | a clock | [`Clock`](backend::clock::Clock), [`Random`](backend::clock::Random) | |
///
/// The documentation of each method is its specification.
/// [CONTRIBUTING](https://github.com/pillarbox/pillarbox/blob/main/CONTRIBUTING.md#add-a-store) tells how to write a store, an
/// adapter or a publisher. A crate that others are to use depends on `pillarbox-core`, which has the same names in modules of the same
/// names.
pub mod backend {
    /// Time and randomness, handed in.
    pub mod clock {
        #[doc(no_inline)]
        pub use crate::event::Timestamp;
        pub use pillarbox_core::clock::{Clock, Random, SystemClock, SystemRandom};
    }

    /// The port to a database. Every bullet of a `# Behavior` list has a conformance test of the same name.
    pub mod store {
        #[doc(no_inline)]
        pub use crate::maintain::{
            Attributes, AuditEntry, AuditedAction, Backlog, Blocked, CANCELLED, Counts, DeadEvent, DeadFilter,
            EventFilter, EventPage, FailedAttempt, InboxConsumer, ListedEvent, NodeFigures, NodeStatus,
            PartitionBacklog, PendingEvent, PendingFilter, PendingState, Purge, Purgeable, Purged, Record,
        };
        #[doc(no_inline)]
        pub use crate::{Admin, Store, TableName};
        pub use pillarbox_core::store::{
            BegunAttempt, Bind, Dialect, Division, Examine, Fetch, FetchScope, Fetched, Heads, History, HistoryKeeper,
            Interventions, LeaseClock, Listener, NodesByLease, Proof, RowSet, SchemaVersion, Statement, StoreInfo,
            WakeUps, Writers, operation, refusal, schema,
        };
    }

    /// Examinations: what a doctor looks for in a database or at a broker, and what it finds.
    pub mod examine {
        pub use pillarbox_core::examine::{Check, Checked, Judgement, Severity, Thresholds, beginning};
    }

    /// Rows of the table, their states, and the verdicts that change them.
    pub mod row {
        #[doc(no_inline)]
        pub use crate::maintain::Status;
        pub use pillarbox_core::row::{
            BrokenRow, Change, Column, Expected, FetchedRow, InvalidPosition, NewRow, OrderKey, Position, RawRow, Row,
            RowId, Verdict,
        };
    }

    /// The ownership of rows: nodes and their leases, fences, partitions and their epochs.
    pub mod ownership {
        #[doc(no_inline)]
        pub use crate::run::{NodeId, NodeName};
        pub use pillarbox_core::ownership::{
            Acquired, CRASHED, DIED, Epochs, Fence, Holding, LeaseMark, NodeMode, Owner, Partitions, PriorAttempt,
            RebalanceView, Rebalanced, Reclaimed, Renewal, Takeover, begun_by, spread,
        };
    }

    /// The port to a driver: the statements of a write, bound on the user's transaction, and the guard of one.
    pub mod write {
        #[doc(no_inline)]
        pub use super::row::NewRow;
        #[doc(no_inline)]
        pub use super::store::{Bind, Dialect, Statement};
        #[doc(no_inline)]
        pub use crate::write::{Connection, Transaction, Written};
        pub use pillarbox_core::write::{
            Action, Begin, Command, ConnectionId, ENDED, Finish, Insert, Lookup, Probe, Question, Receipts, Synchronous,
        };
    }

    /// The port to a broker. Every bullet of a `# Behavior` list has a conformance test of the same name.
    pub mod publisher {
        #[doc(no_inline)]
        pub use crate::publishers::{Message, PublishError, PublishErrorKind, Publisher, Secret};
        pub use pillarbox_core::publisher::{
            FailureScope, Link, Linked, PublisherInfo, Receipt, TargetSyntax, header, is_this_host,
        };
    }
}

/// The drivers on whose transactions events can be written. Enabling a feature is enough; there is nothing to import for
/// [`Outbox::write`] and [`Outbox::begin`].
pub mod adapters {
    #[cfg(any(
        feature = "diesel-async-mysql",
        feature = "diesel-async-postgres",
        feature = "diesel-postgres",
        feature = "diesel-sqlite"
    ))]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(
            feature = "diesel-async-mysql",
            feature = "diesel-async-postgres",
            feature = "diesel-postgres",
            feature = "diesel-sqlite"
        )))
    )]
    #[doc(inline)]
    pub use pillarbox_diesel as diesel;

    #[cfg(feature = "mysql-async")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mysql-async")))]
    #[doc(inline)]
    pub use pillarbox_mysql_async as mysql_async;

    #[cfg(feature = "rusqlite")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rusqlite")))]
    #[doc(inline)]
    pub use pillarbox_rusqlite as rusqlite;

    #[cfg(any(feature = "sea-orm-mysql", feature = "sea-orm-postgres", feature = "sea-orm-sqlite"))]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "sea-orm-mysql", feature = "sea-orm-postgres", feature = "sea-orm-sqlite")))
    )]
    #[doc(inline)]
    pub use pillarbox_sea_orm as sea_orm;

    #[cfg(any(feature = "sqlx-mysql", feature = "sqlx-postgres", feature = "sqlx-sqlite"))]
    #[cfg_attr(docsrs, doc(cfg(any(feature = "sqlx-mysql", feature = "sqlx-postgres", feature = "sqlx-sqlite"))))]
    #[doc(inline)]
    pub use pillarbox_sqlx as sqlx;

    #[cfg(feature = "tokio-postgres")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio-postgres")))]
    #[doc(inline)]
    pub use pillarbox_tokio_postgres as tokio_postgres;
}

#[cfg(feature = "routes")]
#[cfg_attr(docsrs, doc(cfg(feature = "routes")))]
#[doc(inline)]
pub use pillarbox_routes as routes;

/// The brokers that events can be passed on to, as [`Publisher`](publishers::Publisher)s for [`routes`].
pub mod publishers {
    pub use pillarbox_core::publisher::{Message, PublishError, PublishErrorKind, Publisher, Secret};

    #[cfg(feature = "aws")]
    #[cfg_attr(docsrs, doc(cfg(feature = "aws")))]
    pub use pillarbox_aws as aws;

    #[cfg(feature = "kafka")]
    #[cfg_attr(docsrs, doc(cfg(feature = "kafka")))]
    pub use pillarbox_kafka as kafka;

    #[cfg(feature = "mqtt")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mqtt")))]
    pub use pillarbox_mqtt as mqtt;

    #[cfg(feature = "nats")]
    #[cfg_attr(docsrs, doc(cfg(feature = "nats")))]
    pub use pillarbox_nats as nats;

    #[cfg(feature = "rabbitmq")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rabbitmq")))]
    pub use pillarbox_rabbitmq as rabbitmq;

    #[cfg(feature = "redis")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
    pub use pillarbox_redis as redis;

    #[cfg(feature = "webhook")]
    #[cfg_attr(docsrs, doc(cfg(feature = "webhook")))]
    pub use pillarbox_webhook as webhook;
}

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

/// The examples of the guides are compiled with the tests, and run. The README's program is `examples/first-event`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/context.md")]
struct ContextGuide;

#[cfg(all(doctest, feature = "macros", feature = "prost"))]
#[doc = include_str!("../../../docs/codecs.md")]
struct CodecGuide;
