//! What is explored: the instance, its states and its actions.

use super::database::{Database, Event, Key, Status};
use super::reader::Reader;

/// The place of a row in the order of the table.
pub(crate) type Seq = u8;

/// The instance that is explored.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    /// The transactions, each with the keys of the rows that it writes.
    pub(crate) transactions: Vec<Vec<Key>>,
    /// The most rows that a fetch returns.
    pub(crate) limit: usize,
    /// An event that is written with a delay.
    pub(crate) delayed: Option<Event>,
    /// Whether transactions are rolled back, as a whole or to a savepoint.
    pub(crate) rolls_back: bool,
    pub(crate) prepares: bool,
    /// Whether the database tells which transactions are open. If not, time passes.
    pub(crate) tells: bool,
    /// Whether a transaction may be open for longer than the engine waits where the database does not tell.
    pub(crate) long: bool,
    /// How often handlers fail, all in all, and whether an event can go DEAD.
    pub(crate) fails: u8,
    pub(crate) dies: bool,
    /// How often the node dies, or the partition goes to another one.
    pub(crate) crashes: u8,
    pub(crate) goes_back: Option<GoesBack>,
    /// Whether something can happen between the two halves of an answer about the transactions.
    pub(crate) slow_queries: bool,
    /// Whether something can happen between the end of a handler, the record of its verdict and the answer to that.
    pub(crate) slow_verdicts: bool,
    /// Whether the database can go back while the answer to a recorded verdict is on its way.
    pub(crate) late_answers: bool,
    /// Whether memory holds more rows than a fetch can be asked to leave out.
    pub(crate) crowded: bool,
    /// The rule that is broken, for a negative control.
    pub(crate) flaw: Option<Flaw>,
}

/// A way in which a database comes to hold older data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesBack {
    /// It fails over to a replica that lags: connections reach another server.
    FailsOver,
    /// A backup is loaded into the running server, from before the last renewal of the node's lease.
    IsRestored,
    /// The same from after the last renewal.
    IsRestoredYoung,
    /// The server crashes and has lost its last commits: connections are lost, and reach the same server again.
    Restarts,
}

/// A rule of the safe point that is broken, to see that it is needed and that the model would tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The table is taken for complete though transactions are open.
    IgnoresOpenTransactions,
    /// The transactions are read before the snapshot that they are compared with.
    ReadsTransactionsFirst,
    /// A prepared transaction is not known to have had another name.
    ForgetsNewNames,
    /// The mark moves to where the table is complete after the fetch, not before.
    ProvesAfterTheRead,
    /// The mark moves to the highest row that was read.
    MarksWhatWasRead,
    /// A row that becomes due above what is read is delivered at once.
    DeliversDueRowsEarly,
    /// What waits in the table behind an event that has ended is not read again.
    ForgetsWhatWasPutBack,
    /// What waits in memory behind an event that fails is delivered.
    GoesOnBehindAFailure,
    /// A blocked key is free as soon as its failure is recorded, while an older fetch is under way.
    UnblocksDuringAFetch,
    /// A row is taken that was settled while its fetch was under way.
    RevivesWhatWasSettled,
    /// The table is not asked for heads again after a failure.
    NeverAsksForHeadsAgain,
    /// Replays and discards are not noticed.
    IgnoresOperators,
    /// The mark is kept though the server is another.
    KeepsTheMarkAfterAFailover,
    /// The mark is kept though connections were lost.
    KeepsTheMarkAfterALoss,
    /// The mark goes to the next owner, who has nothing of what was in memory.
    HandsTheMarkOn,
    /// The longest transaction is counted from the question for transactions, not from its answer.
    CountsFromTheQuestion,
    /// A verdict that is confirmed after the database went back is taken for recorded.
    TrustsALateAnswer,
    /// Rows of open transactions are read.
    ReadsUncommittedRows,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) database: Database,
    /// The replica or the backup to which the database may go back, without transactions.
    pub(crate) older: Option<Database>,
    pub(crate) went_back: bool,
    /// The server that connections reach, and how often they were lost.
    pub(crate) server: u8,
    pub(crate) losses: u8,
    pub(crate) reader: Reader,
    pub(crate) tick: u8,
    pub(crate) fails: u8,
    pub(crate) crashes: u8,
    pub(crate) history: History,
}

/// A set of events.
pub(crate) type Events = u8;

/// What has happened, as far as the properties ask for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// Of each event that is written, those of its key that were committed before.
    pub(crate) before: Vec<Events>,
    /// The events for which nobody has to wait: delivered, discarded, or lost.
    pub(crate) over: Events,
    /// The events delivered since something cut deliveries off.
    pub(crate) delivered: Events,
    pub(crate) disordered: bool,
    pub(crate) uncommitted: bool,
    pub(crate) twice: bool,
}

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A transaction takes a number for its next row.
    Write(usize),
    /// The row of a transaction that has taken a number is written.
    Insert(usize),
    /// A transaction goes back to the savepoint before its last row.
    Undo(usize),
    Prepare(usize),
    Commit(usize),
    RollBack(usize),
    /// Time passes where the database does not tell of its transactions.
    Tick,
    /// The time of a row comes.
    BecomeDue(Seq),
    Replay(Seq),
    Discard(Seq),
    /// The reader asks for the writers, and the database takes its snapshot.
    Ask,
    /// The database reads its transactions, and the reader has the answer.
    Learn,
    /// The reader asks for rows, and the database answers.
    Fetch,
    /// The answer reaches the reader.
    Take,
    /// A handler delivers an event and ends.
    Deliver(Seq, Status),
    /// A verdict is recorded or refused.
    Record(Seq),
    /// The node learns of that.
    Answer(Seq),
    /// A row has rested.
    Rest(Seq),
    /// The node renews its lease.
    Renew,
    /// The node dies or gives the partition up, and another one owns it.
    Crash,
    /// A replica falls behind, or a backup is made.
    FallBehind,
    GoBack,
}
