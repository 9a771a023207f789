use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EventId, InvalidEvent};
use pillarbox_core::ownership::{Fence, NodeId, Partitions};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{
    BegunAttempt, Fetch, FetchScope, Fetched, FetchedRow, Heads, OrderKey, Record, Row, RowId, Store,
};

use crate::rows::rows_at;
use crate::run::{Db, Outcome};
use crate::{Columns, Harness, nodes};

/// An event whose payload is of no interest.
pub(crate) fn event() -> Result<Envelope, InvalidEvent> {
    Envelope::json("test.event", "{}")
}

/// So many of them.
pub(crate) fn events(count: usize) -> Result<Vec<Envelope>, InvalidEvent> {
    std::iter::repeat_with(event).take(count).collect()
}

/// An event that is due in an hour, so for no test's patience.
pub(crate) fn delayed() -> Result<Envelope, InvalidEvent> {
    Envelope::builder("test.delayed").payload_json("{}").deliver_after(HOUR).build()
}

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The ids of rows that all can be delivered.
pub(crate) fn ids(rows: &[FetchedRow]) -> Result<Vec<&str>, BoxError> {
    rows.iter().map(|row| Ok(decoded(row)?.event.id().as_str())).collect()
}

/// A row that can be delivered.
pub(crate) fn decoded(row: &FetchedRow) -> Result<&Row, BoxError> {
    match row {
        FetchedRow::Row(row) => Ok(row),
        FetchedRow::Broken(row) => Err(format!("row {} cannot be decoded: {}", row.seq, row.reason).into()),
    }
}

/// Everything that is due.
pub(crate) fn all() -> Fetch {
    some(10_000)
}

/// The first `limit` rows that are due.
pub(crate) fn some(limit: usize) -> Fetch {
    Fetch::new(limit)
}

/// The `seq` of each row, in their order.
pub(crate) fn seqs_of(fetched: &Fetched) -> Vec<i64> {
    fetched.rows.iter().map(FetchedRow::seq).collect()
}

/// The `seq` of each row without a due time, in their order.
pub(crate) fn untimed(fetched: &Fetched) -> Vec<i64> {
    fetched.rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).collect()
}

/// Claims, and returns the `seq` of each row, in their order.
pub(crate) async fn claimed(store: &dyn Store, node: &NodeId, fetch: &Fetch) -> Result<Vec<i64>, BoxError> {
    Ok(seqs_of(&store.claim(node, fetch).await?))
}

/// Rows of events that were written, in a table that a node owns.
pub(crate) struct Owned {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) written: Vec<Envelope>,
    pub(crate) seqs: Vec<i64>,
}

/// Has a node own the table, and writes these events.
pub(crate) async fn owned<H: Harness>(db: &Db<H>, written: Vec<Envelope>) -> Result<Owned, BoxError> {
    let store = db.store();
    Ok(Owned { node: nodes::owner(&*store).await?, seqs: db.write(written.clone()).await?, store, written })
}

/// RETRY after this time, without an attempt having failed.
pub(crate) fn retry_in(delay: Duration) -> Change {
    Change::Retry { attempts: 0, delay, error: None }
}

/// A change of each kind, after a first attempt.
pub(crate) fn each_kind() -> [Change; 6] {
    [
        Change::Done,
        Change::Remove,
        Change::Retry { attempts: 1, delay: HOUR, error: Some("later".to_owned()) },
        Change::RetryInPlace { attempts: 1, error: "late".to_owned() },
        Change::Dead { attempts: 1, error: "never".to_owned() },
        Change::Rescued { attempts: 1, error: "another way".to_owned() },
    ]
}

/// A verdict on whatever row stands at a place, however often it was replayed.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) seq: i64,
    pub(crate) expected_attempts: u32,
    pub(crate) change: Change,
}

/// A verdict on one row.
pub(crate) fn verdict(seq: i64, expected_attempts: u32, change: Change) -> Draft {
    Draft { seq, expected_attempts, change }
}

/// Settles the rows that stand there now; returns the refused in ascending order, since a store may return them in any.
pub(crate) async fn settle(
    store: &dyn Store,
    node: &NodeId,
    fence: Fence,
    drafts: &[Draft],
) -> Result<Vec<i64>, BoxError> {
    let seqs: Vec<i64> = drafts.iter().map(|draft| draft.seq).collect();
    let mut verdicts = Vec::with_capacity(drafts.len());
    for (draft, row) in drafts.iter().zip(rows_at(store, &seqs).await?) {
        let replays = store.record(draft.seq).await?.map_or(Ok(0), |record| record.replays.try_into())?;
        let expected = Expected { attempts: draft.expected_attempts, replays };
        verdicts.push(Verdict { row, expected, change: draft.change.clone() });
    }
    let mut refused = store.settle(node, fence, &verdicts).await?;
    refused.sort_unstable();
    Ok(refused)
}

/// The first attempt on a row, announced with nothing to say about an earlier one.
pub(crate) async fn first_attempt(store: &dyn Store, seq: i64) -> Result<BegunAttempt, BoxError> {
    Ok(BegunAttempt { row: row_at(store, seq).await?, expected: Expected::FIRST, attempts: 0, error: None })
}

/// The row at a place.
pub(crate) async fn row_at(store: &dyn Store, seq: i64) -> Result<RowId, BoxError> {
    Ok(rows_at(store, &[seq]).await?.remove(0))
}

/// The owner of the table records the same change in rows that no attempt has failed on yet; fails if a verdict was
/// refused.
pub(crate) async fn settle_all(store: &dyn Store, node: &NodeId, seqs: &[i64], change: &Change) -> Outcome {
    settle_as(store, node, Fence::Table, seqs, change).await
}

/// The same by the node that holds the rows.
pub(crate) async fn settle_held(store: &dyn Store, node: &NodeId, seqs: &[i64], change: &Change) -> Outcome {
    settle_as(store, node, Fence::Row, seqs, change).await
}

async fn settle_as(store: &dyn Store, node: &NodeId, fence: Fence, seqs: &[i64], change: &Change) -> Outcome {
    let verdicts: Vec<_> = seqs.iter().map(|seq| verdict(*seq, 0, change.clone())).collect();
    let refused = settle(store, node, fence, &verdicts).await?;
    if refused.is_empty() { Ok(()) } else { Err(format!("the verdicts on {refused:?} were refused").into()) }
}

/// The row of an event that must be there.
pub(crate) async fn columns<H: Harness>(db: &Db<H>, event: &Envelope) -> Result<Columns, BoxError> {
    db.columns(event.id().as_str()).await?.ok_or_else(|| format!("event {} is gone", event.id()).into())
}

/// The place of an event that must be there.
pub(crate) async fn seq_of<H: Harness>(db: &Db<H>, event_id: &str) -> Result<i64, BoxError> {
    let row = db.columns(event_id).await?;
    row.map(|row| row.seq).ok_or_else(|| format!("event {event_id} is gone").into())
}

/// The rows of events that must be there.
pub(crate) async fn rows<H: Harness>(db: &Db<H>, events: &[Envelope]) -> Result<Vec<Columns>, BoxError> {
    let mut rows = Vec::new();
    for event in events {
        rows.push(columns(db, event).await?);
    }
    Ok(rows)
}

/// The one row of an event.
pub(crate) async fn record<H: Harness>(db: &Db<H>, event: &Envelope) -> Result<Record, BoxError> {
    let mut records = db.store().records(event.id().as_str()).await?;
    match (records.pop(), records.is_empty()) {
        (Some(record), true) => Ok(record),
        _ => Err(format!("event {} has not one row", event.id()).into()),
    }
}

/// The holders of the events, as their rows name them.
pub(crate) async fn holders<H: Harness>(db: &Db<H>, events: &[Envelope]) -> Result<Vec<Option<String>>, BoxError> {
    Ok(rows(db, events).await?.into_iter().map(|row| row.locked_by).collect())
}

/// An event with an ordering key.
pub(crate) fn keyed(key: &str) -> Result<Envelope, InvalidEvent> {
    Envelope::builder("test.keyed").key(key).payload_json("{}").build()
}

/// One event for each key.
pub(crate) fn keyed_each(keys: &[&str]) -> Result<Vec<Envelope>, InvalidEvent> {
    keys.iter().map(|key| keyed(key)).collect()
}

/// All rows of all partitions, behind no head.
pub(crate) fn everything() -> FetchScope {
    FetchScope { partitions: 0..=255, heads: Heads::None, without: Vec::new(), only: Vec::new(), node: None }
}

/// Everything that is due in a scope.
pub(crate) fn within(scope: FetchScope) -> Fetch {
    Fetch { scope: Some(scope), ..all() }
}

/// The key of rows for one handler, or for the only one.
pub(crate) fn order_key(handler: Option<&str>, key: &str) -> OrderKey {
    OrderKey { handler: handler.map(Box::from), key: key.into() }
}

/// Rows that could stand in the place of this one: of another event, and of the same event for a handler.
pub(crate) fn others_in_the_place_of(row: &RowId) -> [RowId; 2] {
    let another = EventId::from_stored("another event");
    [RowId { event_id: another, ..row.clone() }, RowId { handler: Some("another".into()), ..row.clone() }]
}

/// A node to which all rows belong that are there, as this fence sees it.
pub(crate) async fn entitled(store: &dyn Store, fence: Fence) -> Result<NodeId, BoxError> {
    match fence {
        Fence::Table => nodes::owner(store).await,
        Fence::Partition => {
            let node = nodes::rebalancer(store).await?;
            nodes::rebalance(store, &node, Partitions::NONE).await?;
            Ok(node)
        }
        Fence::Row => {
            let node = nodes::peer(store).await?;
            claimed(store, &node, &all()).await?;
            Ok(node)
        }
    }
}
