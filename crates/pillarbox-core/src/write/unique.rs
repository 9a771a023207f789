use super::insert::insert_all;
use super::savepoint::Savepoint;
use super::{Connection, Insert, NewRow, WriteError};
use crate::event::EventId;
use crate::store::Store;

/// A row that was not written, since one with its unique key is pending already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The id of the event that was to be written.
    pub event_id: EventId,
    /// The handler that the row was for, if its event has several.
    pub handler: Option<Box<str>>,
    /// The `seq` of the row that is pending; `None` if the database cannot tell, which happens if it was committed while this write
    /// waited for it.
    pub pending: Option<i64>,
}

/// The rows of a write: those that were inserted, with their `seq`, and those that were not.
#[derive(Debug, Default)]
pub struct Inserted {
    pub(super) rows: Vec<NewRow>,
    /// Of `rows`, in their order; ascending.
    pub(super) seqs: Vec<i64>,
    pub(super) skipped: Vec<Skipped>,
}

/// The outcome of the insert of a row with a unique key.
enum Answer {
    Written(i64),
    Pending(Option<i64>),
}

/// Inserts rows of which some have unique keys: each of these by itself, and those between them together, so that the numbers ascend
/// in the order of the rows.
pub(super) async fn insert_some_unique<M, C: Connection<M>>(
    store: &dyn Store,
    connection: &mut C,
    rows: Vec<NewRow>,
) -> Result<Inserted, WriteError<C::Error>> {
    let mut inserted = Inserted { rows: Vec::with_capacity(rows.len()), ..Inserted::default() };
    let is_alone = rows.len() == 1;
    for rows in rows.chunk_by(|one, next| one.unique_key().is_none() && next.unique_key().is_none()) {
        match rows {
            [row] if row.unique_key().is_some() => match insert_unique(store, connection, row, is_alone).await? {
                Answer::Written(seq) => {
                    inserted.rows.push(row.clone());
                    inserted.seqs.push(seq);
                }
                Answer::Pending(pending) => {
                    let event_id = row.envelope().id().clone();
                    let handler = row.handler().map(Box::from);
                    inserted.skipped.push(Skipped { event_id, handler, pending });
                }
            },
            rows => {
                let insert = Insert { rows, statements: store.insert(rows) };
                inserted.seqs.extend(insert_all(connection, &insert).await?);
                inserted.rows.extend_from_slice(rows);
            }
        }
    }
    Ok(inserted)
}

/// The offset that [`Store::insert_unique`] subtracts from the `seq` of an ended row: half the range of numbers.
pub const ENDED: i64 = 1 << 62;

/// Inserts one row that has a unique key, unless a row with the same key is pending. See [`Store::insert_unique`]. One that `is_alone` in its write
/// sets a savepoint of its own where a row that has ended gives up its key first: should the insert fail, that row has to keep it.
async fn insert_unique<M, C: Connection<M>>(
    store: &dyn Store,
    connection: &mut C,
    row: &NewRow,
    is_alone: bool,
) -> Result<Answer, WriteError<C::Error>> {
    let rows = std::slice::from_ref(row);
    let mut ended = None;
    let mut is_again = false;
    let look = store.find_unique(row);
    let frees_by_itself = look.is_none();
    if let Some(look) = look {
        let insert = Insert { rows, statements: vec![look] };
        match connection.insert(&insert).await.map_err(WriteError::Database)?.first() {
            Some(seq @ ..0) => return Ok(Answer::Pending(Some(-seq))),
            Some(seq @ 1..) => ended = Some(*seq),
            Some(0) | None => {}
        }
    }
    loop {
        let savepoint = Savepoint::before(connection, is_alone && (frees_by_itself || ended.is_some())).await?;
        let insert = Insert { rows, statements: store.insert_unique(row, ended) };
        let answer = match connection.insert(&insert).await.map_err(WriteError::Database) {
            Ok(seqs) if seqs.first() == Some(&0) => Err(WriteError::Duplicate { id: row.envelope().id().clone() }),
            seqs => seqs.map(|seqs| seqs.first().copied()),
        };
        return match savepoint.after(connection, answer).await? {
            Some(seq @ 1..) => Ok(Answer::Written(seq)),
            // It is locked by now, so that it gives up its key, and no other row can have got it.
            Some(seq) if seq < -ENDED / 2 && !is_again => {
                (ended, is_again) = (Some(seq + ENDED), true);
                continue;
            }
            Some(seq) => Ok(Answer::Pending(Some(-seq))),
            None => Ok(Answer::Pending(None)),
        };
    }
}
