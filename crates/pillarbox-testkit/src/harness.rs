use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Store, TableName};
use pillarbox_core::write::{Begin, Connection, Dialect, Finish, insert};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The capabilities of a backend beyond the port. One that it lacks shows up as an ignored test, never as a missing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It speaks SQL: there are statements to count and a schema to migrate.
    pub sql: bool,
    /// Two writing transactions can be open at the same time.
    pub concurrent_writers: bool,
    /// Processes can wake each other through it: [`Store::wake_ups`] returns something.
    pub wake_ups: bool,
    /// A transaction waits for the rows that another one has changed, and for nothing else of it.
    pub row_locks: bool,
    /// [`Store::writers`] tells which transactions may still commit.
    pub tells_writers: bool,
}

/// The type that a backend's transactions dereference to.
pub type InnerOf<H> = <<H as Harness>::Transaction as Finish<<H as Harness>::Marker>>::Inner;

/// The error of a backend's transactions.
pub type ErrorOf<H> = <<H as Harness>::Transaction as Finish<<H as Harness>::Marker>>::Error;

/// Gives the suite access to one backend. One value is one database of its own: fresh, shared with no other test.
///
/// A backend with SQL implements [`execute`](Self::execute), [`execute_in`](Self::execute_in), [`query`](Self::query),
/// [`sql_time`](Self::sql_time) and
/// [`sql_hex`](Self::sql_hex); the actions below them follow, once [`quote`](Self::quote) and
/// [`sql_text`](Self::sql_text) fit its SQL. Any other implements those actions instead.
pub trait Harness: Sized + Send + Sync + 'static {
    /// The adapter's marker, as in [`Connection`].
    type Marker: 'static;
    /// A transaction on the harness's own connection, as a user's code has.
    type Transaction: Connection<Self::Marker>
        + Finish<Self::Marker, Inner: Connection<Self::Marker> + Sized + Send>
        + Send
        + 'static;
    /// The source of those transactions, such as `&Pool`.
    type Source<'a>: Begin<Self::Marker, Transaction = Self::Transaction, Error = ErrorOf<Self>>;

    /// The capabilities of the backend.
    const CAPABILITIES: Capabilities;

    /// Makes a database of its own, without any tables yet. The store in it should have a table name of its own too.
    fn create() -> impl Future<Output = Result<Self, BoxError>> + Send;

    /// Removes it. Called after failures too.
    fn destroy(self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// The store under test; the same at every call.
    fn store(&self) -> Arc<dyn Store>;

    /// Another store on the same tables with connections of its own, as another node has.
    fn connect(&self) -> impl Future<Output = Result<Arc<dyn Store>, BoxError>> + Send;

    /// The source of user transactions.
    fn source(&self) -> Self::Source<'_>;

    /// Runs SQL statements that return nothing, separated by semicolons.
    fn execute(&self, sql: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Err(no_sql(sql)))
    }

    /// Runs an SQL query and returns its first row, all of whose columns are text.
    fn query(&self, sql: &str) -> impl Future<Output = Result<Option<Vec<Option<String>>>, BoxError>> + Send {
        std::future::ready(Err(no_sql(sql)))
    }

    /// Runs an SQL statement in a user's transaction.
    fn execute_in(_transaction: &mut InnerOf<Self>, sql: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Err(no_sql(sql)))
    }

    /// Sets a savepoint in a user's transaction.
    fn savepoint(transaction: &mut InnerOf<Self>, name: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("SAVEPOINT {name}");
        async move { Self::execute_in(transaction, &sql).await }
    }

    /// Rolls a user's transaction back to a savepoint.
    fn rollback_to(transaction: &mut InnerOf<Self>, name: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("ROLLBACK TO SAVEPOINT {name}");
        async move { Self::execute_in(transaction, &sql).await }
    }

    /// Releases a savepoint of a user's transaction.
    fn release(transaction: &mut InnerOf<Self>, name: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("RELEASE SAVEPOINT {name}");
        async move { Self::execute_in(transaction, &sql).await }
    }

    /// SQL for the time this many seconds from now, in the type of `expires_at` and `available_at`.
    fn sql_time(_seconds: i64) -> String {
        String::new()
    }

    /// SQL for the bytes in a column as lower-case hexadecimal text.
    fn sql_hex(_column: &str) -> String {
        String::new()
    }

    /// SQL for a JSON text of so many bytes.
    fn sql_json(_bytes: usize) -> String {
        String::new()
    }

    /// SQL for a column as text.
    fn sql_text(column: &str) -> String {
        format!("CAST({column} AS text)")
    }

    /// An identifier, quoted for SQL.
    fn quote(identifier: &str) -> String {
        format!("\"{identifier}\"")
    }

    /// Runs SQL in a transaction on a connection of its own, which stays open until it is released. With row locks only.
    fn hold(&self, sql: &str) -> impl Future<Output = Result<Held, BoxError>> + Send {
        std::future::ready(Err(no_sql(sql)))
    }

    /// The number of statements on the outbox's tables that wait for a lock at this moment. With row locks only.
    fn waiting(&self) -> impl Future<Output = Result<usize, BoxError>> + Send {
        std::future::ready(Err(no_sql("who waits for a lock")))
    }

    /// Begins a user's transaction.
    fn begin(&self) -> impl Future<Output = Result<Self::Transaction, BoxError>> + Send {
        let begin = self.source().begin();
        async move { Ok(begin.await?) }
    }

    /// Writes events in a transaction of their own and commits it.
    fn write(&self, events: Vec<Envelope>) -> impl Future<Output = Result<Vec<i64>, BoxError>> + Send {
        async move {
            let mut transaction = self.begin().await?;
            let seqs = insert(&*self.store(), &mut transaction, events).await?;
            transaction.commit().await?;
            Ok(seqs)
        }
    }

    /// Inserts a row setting only the three columns of the SQL contract.
    fn insert_three_columns(
        &self,
        event_id: &str,
        event_type: &str,
        payload: &str,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!(
            "INSERT INTO {} (event_id, event_type, payload) VALUES ('{event_id}', '{event_type}', '{payload}')",
            self.table("event")
        );
        async move { self.execute(&sql).await }
    }

    /// Inserts a row as a program without Pillarbox does that knows of aggregates: no ordering key, and no partition.
    fn insert_of_aggregate(
        &self,
        event_id: &str,
        aggregate_id: &str,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!(
            "INSERT INTO {} (event_id, event_type, aggregate_id, payload) VALUES ('{event_id}', 'test.foreign', \
             '{aggregate_id}', '{{}}')",
            self.table("event")
        );
        async move { self.execute(&sql).await }
    }

    /// Makes an event one for the named handler.
    fn set_handler(&self, event_id: &str, handler: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let handler = handler.replace('\'', "''");
        let sql = format!("UPDATE {} SET handler = '{handler}' WHERE event_id = '{event_id}'", self.table("event"));
        async move { self.execute(&sql).await }
    }

    /// Makes an event's row one that makes no event: a header's value is no string.
    fn break_row(&self, event_id: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!(r#"UPDATE {} SET headers = '{{"a": 1}}' WHERE event_id = '{event_id}'"#, self.table("event"));
        async move { self.execute(&sql).await }
    }

    /// Writes a partition into an event's row, whether it exists or not.
    fn set_partition(&self, event_id: &str, partition: i16) -> impl Future<Output = Result<(), BoxError>> + Send {
        let column = if self.store().info().dialect == Dialect::MYSQL { "`partition`" } else { "partition" };
        let sql = format!("UPDATE {} SET {column} = {partition} WHERE event_id = '{event_id}'", self.table("event"));
        async move { self.execute(&sql).await }
    }

    /// Inserts a row that makes no event: a header's value is no string.
    fn insert_broken(&self, event_id: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!(
            r#"INSERT INTO {} (event_id, event_type, payload, headers) VALUES ('{event_id}', 'broken', '{{}}', '{{"a": 1}}')"#,
            self.table("event")
        );
        async move { self.execute(&sql).await }
    }

    /// Reads a row as it stands, committed and whatever its state.
    fn columns(&self, event_id: &str) -> impl Future<Output = Result<Option<Columns>, BoxError>> + Send {
        let sql = format!("SELECT {} FROM {} WHERE event_id = '{event_id}'", columns::<Self>(), self.table("event"));
        async move { self.query(&sql).await?.map(Columns::parse).transpose() }
    }

    /// Moves the due time of a row that has one into the past.
    fn make_due(&self, event_id: &str) -> impl Future<Output = Result<(), BoxError>> + Send {
        // Created before, or the due time would be no delay.
        let sql = format!(
            "UPDATE {} SET available_at = {}, created_at = CASE WHEN created_at < {before} THEN created_at ELSE {before} END
             WHERE event_id = '{event_id}' AND available_at IS NOT NULL",
            self.table("event"),
            Self::sql_time(-1),
            before = Self::sql_time(-2)
        );
        async move { self.execute(&sql).await }
    }

    /// Makes every row that is there look created this many seconds ago and, if it has ended, ended then too.
    ///
    /// A harness may let its database's clock jump instead, so tests age a database once, and by less than the hour that
    /// their leases and delays last.
    fn age(&self, seconds: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let then = Self::sql_time(-seconds);
        let sql = format!(
            "UPDATE {} SET created_at = {then}, done_at = CASE WHEN done_at IS NULL THEN NULL ELSE {then} END",
            self.table("event")
        );
        async move { self.execute(&sql).await }
    }

    /// As [`age`](Self::age), from the row `seq` on.
    fn age_from(&self, seq: i64, seconds: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let then = Self::sql_time(-seconds);
        let sql = format!(
            "UPDATE {} SET created_at = {then}, done_at = CASE WHEN done_at IS NULL THEN NULL ELSE {then} END WHERE seq >= {seq}",
            self.table("event")
        );
        async move { self.execute(&sql).await }
    }

    /// Makes every message in the inbox look received this many seconds ago; as [`age`](Self::age) does, once.
    fn age_inbox(&self, seconds: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("UPDATE {} SET received_at = {}", self.table("inbox"), Self::sql_time(-seconds));
        async move { self.execute(&sql).await }
    }

    /// Makes every entry of the audit table look this many seconds old; as [`age`](Self::age) does, once.
    fn age_audit(&self, seconds: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("UPDATE {} SET began_at = {}", self.table("audit"), Self::sql_time(-seconds));
        async move { self.execute(&sql).await }
    }

    /// Records that a later release has migrated the tables, on which releases of the present version can run or cannot.
    fn set_newer_schema(&self, compatible: bool) -> impl Future<Output = Result<(), BoxError>> + Send {
        let from = if compatible { "max(version)" } else { "max(version) + 1000" };
        let table = self.table("migration");
        let sql = format!(
            "INSERT INTO {table} (version, applied_at, compatible_from)
             SELECT max(version) + 1000, max(applied_at), {from} FROM {table}"
        );
        async move { self.execute(&sql).await }
    }

    /// Registers a node of any mode, whose lease ends this many seconds from now.
    fn register(&self, node: &NodeId, mode: &str, lease: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!(
            "INSERT INTO {} (node_id, mode, started_at, expires_at) VALUES ('{node}', '{mode}', {}, {})",
            self.table("node"),
            Self::sql_time(0),
            Self::sql_time(lease)
        );
        async move { self.execute(&sql).await }
    }

    /// Ends a node's lease, as if it had not renewed for long.
    fn expire(&self, node: &NodeId) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql =
            format!("UPDATE {} SET expires_at = {} WHERE node_id = '{node}'", self.table("node"), Self::sql_time(-1));
        async move { self.execute(&sql).await }
    }

    /// Empties the table and has its numbers begin anew, as `TRUNCATE` does.
    fn empty(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = emptying(self);
        async move { self.execute(&sql).await }
    }

    /// Goes back to when the table was empty and the nodes had just joined, as a database does that is restored from a backup
    /// under them: the rows are lost, their numbers are given again, and the leases end earlier than their nodes know.
    fn go_back(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        let (node, soon) = (self.table("node"), Self::sql_time(2));
        let sql = format!("{}; UPDATE {node} SET expires_at = {soon}", emptying(self));
        async move { self.execute(&sql).await }
    }

    /// Sets the database's clock back, as it looks from the leases: each ends so many seconds from now. What renews goes on.
    fn set_clock_back(&self, seconds: i64) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("UPDATE {} SET expires_at = {}", self.table("node"), Self::sql_time(seconds));
        async move { self.execute(&sql).await }
    }

    /// Sets the database's clock forward, as this process sees it: all of the process stands still meanwhile, and its monotonic clock
    /// with it. Needs a runtime of one thread.
    fn set_clock_forward(&self, by: Duration) -> impl Future<Output = Result<(), BoxError>> + Send {
        async move {
            tokio::time::pause();
            #[expect(clippy::disallowed_methods, reason = "the one thread of the runtime has to stand still")]
            std::thread::sleep(by);
            tokio::time::resume();
            Ok(())
        }
    }

    /// Removes a node from the register and leaves everything else, so that its rows name a node that nobody knows.
    fn forget(&self, node: &NodeId) -> impl Future<Output = Result<(), BoxError>> + Send {
        let sql = format!("DELETE FROM {} WHERE node_id = '{node}'", self.table("node"));
        async move { self.execute(&sql).await }
    }

    /// One of the outbox's tables, quoted for SQL: `event`, `node`, `partition`, `migration`, `inbox`.
    fn table(&self, role: &str) -> String {
        let configured = self.store().info().table.clone();
        let Ok(name) = TableName::parse(&configured) else { return configured };
        let table = if role == "event" { name.event().to_owned() } else { name.beside(role) };
        match name.schema() {
            Some(schema) => format!("{}.{}", Self::quote(schema), Self::quote(&table)),
            None => Self::quote(&table),
        }
    }
}

/// A transaction that is open. Dropping it rolls it back.
#[derive(Debug)]
pub struct Held {
    commit: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), String>>,
}

impl Held {
    /// A transaction that is begun by `begin`, and committed by what that returns.
    ///
    /// # Errors
    /// When it cannot be begun.
    pub async fn begin<C>(begin: impl Future<Output = Result<C, BoxError>> + Send + 'static) -> Result<Self, BoxError>
    where
        C: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let (began, told) = oneshot::channel();
        let (commit, committing) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "the transaction is the test's, not the outbox's")]
        let ended = tokio::spawn(async move {
            let end = begin.await.map_err(|error| error.to_string())?;
            // Whoever does not wait for it any more has dropped it.
            let _ = began.send(());
            match committing.await {
                Ok(()) => end.await.map_err(|error| error.to_string()),
                Err(_dropped) => Ok(()),
            }
        });
        match told.await {
            Ok(()) => Ok(Self { commit, ended }),
            Err(_ended) => Err(ended.await?.err().unwrap_or_else(|| "it ended at once".to_owned()).into()),
        }
    }

    /// Commits it.
    ///
    /// # Errors
    /// When it cannot be committed.
    pub async fn release(self) -> Result<(), BoxError> {
        self.commit.send(()).map_err(|()| "the transaction has ended already")?;
        Ok(self.ended.await??)
    }
}

/// A row as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the columns")]
pub struct Columns {
    pub seq: i64,
    pub event_type: String,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
    pub tenant_id: Option<String>,
    pub ordering_key: Option<String>,
    pub partition: Option<u8>,
    pub payload: Option<String>,
    pub payload_bytes: Option<Vec<u8>>,
    pub content_type: Option<String>,
    pub headers: Option<String>,
    pub status: i16,
    pub attempts: u32,
    /// True if `available_at` is set, and to no time before the creation, which is none.
    pub timed: bool,
    /// True if `done_at` is set.
    pub ended: bool,
    pub last_error: Option<String>,
    pub locked_by: Option<String>,
}

/// SQL that deletes all rows and has their numbers begin anew.
fn emptying<H: Harness>(harness: &H) -> String {
    let event = harness.table("event");
    let dialect = harness.store().info().dialect;
    let first = if dialect == Dialect::POSTGRES {
        format!("ALTER TABLE {event} ALTER COLUMN seq RESTART WITH 1")
    } else if dialect == Dialect::MYSQL {
        format!("ALTER TABLE {event} AUTO_INCREMENT = 1")
    } else {
        format!("DELETE FROM sqlite_sequence WHERE name = '{}'", event.trim_matches('"'))
    };
    format!("DELETE FROM {event}; {first}")
}

/// The columns as text, in the order in which [`Columns::parse`] takes them.
fn columns<H: Harness>() -> String {
    let text = H::sql_text;
    let mut list = vec![text("seq"), "event_type".to_owned()];
    list.extend(["aggregate_type", "aggregate_id", "tenant_id", "ordering_key"].map(str::to_owned));
    list.extend([
        text(&H::quote("partition")),
        text("payload"),
        H::sql_hex("payload_bytes"),
        "content_type".to_owned(),
        text("headers"),
    ]);
    list.extend([text("status"), text("attempts")]);
    list.extend(
        ["available_at >= created_at", "done_at IS NOT NULL"]
            .map(|is_set| format!("CASE WHEN {is_set} THEN 'set' END")),
    );
    list.extend(["last_error", "locked_by"].map(str::to_owned));
    list.join(", ")
}

impl Columns {
    fn parse(row: Vec<Option<String>>) -> Result<Self, BoxError> {
        let row: [Option<String>; 17] =
            row.try_into().map_err(|row: Vec<_>| format!("expected 17 columns, not {}", row.len()))?;
        let [seq, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, partition, rest @ ..] = row;
        let [payload, bytes, content_type, headers, status, attempts, available_at, done_at, last_error, locked_by] =
            rest;
        let set = |column: Option<String>| column.ok_or("a column that must not be NULL is");
        Ok(Self {
            seq: set(seq)?.parse()?,
            event_type: set(event_type)?,
            aggregate_type,
            aggregate_id,
            tenant_id,
            ordering_key,
            partition: partition.map(|number| number.parse()).transpose()?,
            payload,
            payload_bytes: bytes.map(|hex| unhex(&hex)).transpose()?,
            content_type,
            headers,
            status: set(status)?.parse()?,
            attempts: set(attempts)?.parse()?,
            timed: available_at.is_some(),
            ended: done_at.is_some(),
            last_error,
            locked_by,
        })
    }
}

fn unhex(hex: &str) -> Result<Vec<u8>, BoxError> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| "the bytes are not hexadecimal text".into())
}

fn no_sql(sql: &str) -> BoxError {
    format!("this harness runs no SQL, so it has to implement the action itself: {sql}").into()
}
