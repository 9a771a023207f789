use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use mysql_async::Row;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, Payload};
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::store::{
    Backlog, Blocked, Counts, FailedAttempt, NodeFigures, NodeStatus, PartitionBacklog, Record, RowState,
};

use tokio::time::Instant;

use crate::answer::{bytes, count, int, is_true, optional_int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// The state as which `counts.sql` counts rows that were cancelled.
const CANCELLED_STATE: i64 = 4;

pub(crate) async fn counts(store: &Inner) -> Result<Counts, Failure> {
    let answers = store.sessions.run(&store.sql.counts).await?;
    let mut counts = Counts::default();
    for row in answers.rows(0) {
        let (status, count) = (int(row, 0)?, count(row, 1)?);
        match Status::ALL.into_iter().find(|known| i64::from(known.code()) == status) {
            Some(Status::New) => counts.new = count,
            Some(Status::Done) => counts.done = count,
            Some(Status::Retry) => counts.retry = count,
            Some(Status::Dead) => counts.dead = count,
            None if status == CANCELLED_STATE => counts.cancelled = count,
            None => counts.unknown += count,
        }
    }
    Ok(counts)
}

pub(crate) async fn backlog(store: &Inner) -> Result<Backlog, Failure> {
    let answers = store.sessions.run(&store.sql.backlog).await?;
    let Some(row) = answers.first(0) else { return Ok(Backlog::default()) };
    let oldest = |index| Ok::<Option<Duration>, Failure>(optional_int(row, index)?.map(wait));
    Ok(Backlog {
        due: count(row, 0)? + count(row, 1)?,
        delayed: count(row, 2)?,
        dead: count(row, 3)?,
        oldest_due: oldest(4)?.max(oldest(5)?),
    })
}

pub(crate) async fn nodes(store: &Inner) -> Result<Vec<NodeStatus>, Failure> {
    let mut session = store.sessions.session().await?;
    let asked = Instant::now();
    let answers = session.run(&store.sql.nodes).await?;
    session.finish();
    let (nodes, now) = statuses(answers.rows(0))?;
    if let Some(now) = now {
        store.lease_clock.observe(&nodes, now, asked);
    }
    Ok(nodes)
}

/// The nodes as `nodes.sql` finds them, and the time at which it did; without nodes it says none.
pub(crate) fn statuses(rows: &[Row]) -> Result<(Vec<NodeStatus>, Option<Timestamp>), Failure> {
    let node = |row: &Row| {
        Ok(NodeStatus {
            node: NodeId::from_stored(text(row, 0)?.unwrap_or_default()),
            mode: text(row, 1)?.unwrap_or_default().to_owned(),
            started_at: time(row, 2)?.unwrap_or(EPOCH),
            lease_left: Some(int(row, 3)?).filter(|left| *left > 0).map(wait),
            partitions: number(row, 4)?,
            expires_at: time(row, 5)?.unwrap_or(EPOCH),
            lease: optional_int(row, 6)?.map(wait),
            figures: NodeFigures::of(text(row, 7)?),
        })
    };
    let nodes = rows.iter().map(node).collect::<Result<_, Failure>>()?;
    let now = rows.first().map(|row| Ok::<_, Failure>(int(row, 5)? - int(row, 3)?)).transpose()?;
    Ok((nodes, now.map(Timestamp::from_micros)))
}

pub(crate) async fn partitions(store: &Inner) -> Result<PartitionBacklog, Failure> {
    let answers = store.sessions.run(&store.sql.partitions).await?;
    let Some(row) = answers.first(0) else { return Ok(PartitionBacklog::default()) };
    Ok(PartitionBacklog { unowned: number(row, 0)?, pending: count(row, 1)?, most_pending: count(row, 2)? })
}

pub(crate) async fn partition_owners(store: &Inner) -> Result<Vec<(u8, NodeId)>, Failure> {
    let answers = store.sessions.run(&store.sql.partition_owners).await?;
    let owner = |row: &Row| {
        let partition = u8::try_from(number(row, 0)?).unwrap_or_default();
        Ok((partition, NodeId::from_stored(text(row, 1)?.unwrap_or_default())))
    };
    answers.rows(0).iter().map(owner).collect()
}

pub(crate) async fn blocked(store: &Inner, above: i64, limit: usize) -> Result<Vec<Blocked>, Failure> {
    let mut session = store.sessions.session().await?;
    let answers = session.run(fill(&store.sql.lowest_head, &[("above", &Literal::int(above))])).await?;
    // Mostly there is none, and no reason to look at the rows that are pending.
    let Some(lowest) = answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))? else {
        session.finish();
        return Ok(Vec::new());
    };
    let most = i64::try_from(Blocked::COUNTED_UP_TO).unwrap_or(i64::MAX);
    let (lowest, limit, most) = (Literal::int(lowest), Literal::count(limit), Literal::int(most));
    let values = [("lowest", &lowest), ("limit", &limit), ("most", &most)];
    let answers = session.run(fill(&store.sql.blocked, &values)).await?;
    session.finish();
    let head = |row: &Row| {
        let dead = is_true(row, 5)?;
        Ok(Blocked {
            seq: int(row, 0)?,
            event_id: owned(row, 1)?.unwrap_or_default(),
            event_type: owned(row, 2)?.unwrap_or_default(),
            key: owned(row, 3)?.unwrap_or_default(),
            handler: owned(row, 4)?,
            dead,
            attempts: i32::try_from(int(row, 6)?).unwrap_or(i32::MAX),
            due_in: optional_int(row, 7)?.filter(|left| !dead && *left > 0).map(wait),
            last_error: owned(row, 8)?,
            waiting: count(row, 9)?,
        })
    };
    answers.rows(0).iter().map(head).collect()
}

pub(crate) async fn head_of(store: &Inner, seq: i64) -> Result<Option<i64>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.head_of, &[("seq", &Literal::int(seq))])).await?;
    answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))
}

pub(crate) async fn records(store: &Inner, event_id: &str) -> Result<Vec<Record>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.record, &[("event_id", &Literal::text(event_id))])).await?;
    let mut records = answers.rows(0).iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // A handful, sorted here rather than by the server, which would weigh that against reading the table in this order.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

/// The row with this `seq`.
pub(crate) async fn by_seq(store: &Inner, seq: i64) -> Result<Option<Record>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.record_by_seq, &[("seq", &Literal::int(seq))])).await?;
    answers.first(0).map(read).transpose()
}

/// The states of all rows of these events.
pub(crate) async fn states(store: &Inner, event_ids: &[EventId]) -> Result<Vec<RowState>, Failure> {
    let ids: Vec<&str> = event_ids.iter().map(EventId::as_str).collect();
    let answers = store.sessions.run(fill(&store.sql.states, &[("event_ids", &Literal::texts(&ids))])).await?;
    let asked: HashSet<&str> = ids.into_iter().collect();
    let state = |row: &Row| {
        let (event_id, handler) = (text(row, 0)?.unwrap_or_default(), text(row, 1)?.map(Box::from));
        Ok(RowState::new(EventId::from_stored(event_id), handler, int(row, 2)?, owned(row, 3)?, owned(row, 4)?))
    };
    let mut states = answers.rows(0).iter().map(state).collect::<Result<Vec<_>, Failure>>()?;
    states.retain(|state| asked.contains(state.event_id.as_str()));
    Ok(states)
}

fn read(row: &Row) -> Result<Record, Failure> {
    let payload = match (owned(row, 7)?, bytes(row, 8)?) {
        (Some(json), _) => Some(Payload::Json(json.into())),
        (None, Some(bytes)) => Some(Payload::Binary {
            content_type: owned(row, 9)?.unwrap_or_default().into(),
            bytes: Bytes::copy_from_slice(bytes),
        }),
        (None, None) => None,
    };
    Ok(Record {
        seq: int(row, 0)?,
        event_id: owned(row, 1)?.unwrap_or_default(),
        event_type: owned(row, 2)?.unwrap_or_default(),
        aggregate_type: owned(row, 3)?,
        aggregate_id: owned(row, 4)?,
        tenant_id: owned(row, 5)?,
        ordering_key: owned(row, 6)?,
        unique_key: owned(row, 22)?,
        handler: owned(row, 19)?,
        payload,
        headers: owned(row, 10)?,
        status: i16::try_from(int(row, 11)?).unwrap_or(i16::MAX),
        attempts: i32::try_from(int(row, 12)?).unwrap_or(i32::MAX),
        replays: i32::try_from(int(row, 20)?).unwrap_or(i32::MAX),
        available_at: time(row, 13)?,
        occurred_at: time(row, 14)?,
        created_at: time(row, 15)?.unwrap_or(EPOCH),
        done_at: time(row, 16)?,
        last_error: owned(row, 17)?,
        locked_by: owned(row, 18)?,
        delivered_as: owned(row, 23)?,
        failures: FailedAttempt::all_of(text(row, 21)?),
    })
}

pub(crate) fn owned(row: &Row, index: usize) -> Result<Option<String>, Failure> {
    Ok(text(row, index)?.map(str::to_owned))
}

pub(crate) fn time(row: &Row, index: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(optional_int(row, index)?.map(Timestamp::from_micros))
}

/// A number of partitions.
fn number(row: &Row, index: usize) -> Result<u16, Failure> {
    Ok(u16::try_from(count(row, index)?).unwrap_or(u16::MAX))
}

/// For columns that cannot be NULL, should they be.
pub(crate) const EPOCH: Timestamp = Timestamp::from_micros(0);
