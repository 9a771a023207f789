use crate::store::RowId;

/// A question that a commit answers: which of the rows written in the transaction are still there.
///
/// A row may be gone although the transaction commits: it was rolled back to a savepoint, by SQL or by a nested transaction
/// of the driver's, or the transaction was ended by hand and another begun.
#[derive(Debug, Default)]
pub struct Probe {
    /// The `seq` of the rows. None if nobody needs to know.
    pub rows: Vec<i64>,
    /// The query for them, [`Store::identify_sql`](crate::store::Store::identify_sql): it returns `seq`, `event_id` and
    /// `handler`. `None` if there are no rows, or no SQL.
    pub sql: Option<String>,
}

impl Probe {
    /// The probe of a commit of which nobody wants to know anything, or all is known.
    #[must_use]
    pub const fn none() -> Self {
        Self { rows: Vec::new(), sql: None }
    }
}

/// The answer to a probe.
#[derive(Debug)]
pub enum Found {
    /// These of the rows are there. Ascending.
    Rows(Vec<RowId>),
    /// All rows are there.
    All,
}

impl Found {
    /// The rows that a look-up returned.
    #[must_use]
    pub fn new(mut rows: Vec<RowId>) -> Self {
        rows.sort_unstable_by(|a, b| (a.seq, a.event_id.as_str()).cmp(&(b.seq, b.event_id.as_str())));
        Self::Rows(rows)
    }

    /// The fate of a row, if `probed`, which ascends, are the rows of its receipt that were asked for. Its event counts as well
    /// as its `seq`, which SQLite rolls back with the row, and gives again.
    pub fn presence(&self, probed: &[i64], seq: i64, event_id: &str) -> Presence {
        if probed.binary_search(&seq).is_err() {
            return Presence::Unknown;
        }
        let Self::Rows(rows) = self else { return Presence::There };
        let found = rows.binary_search_by(|row| (row.seq, row.event_id.as_str()).cmp(&(seq, event_id)));
        if found.is_ok() { Presence::There } else { Presence::Gone }
    }
}

/// The fate of a written row when its transaction has committed, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It was found.
    There,
    /// It was looked for and not found.
    Gone,
    /// It was not looked for.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventId;

    #[test]
    fn a_row_is_there_only_with_its_own_event_id() {
        let row = |seq, event_id: &str| RowId { seq, event_id: EventId::from_stored(event_id), handler: None };
        let found = Found::new(vec![row(7, "b"), row(5, "a")]);
        let table =
            [(5, "a", Presence::There), (5, "b", Presence::Gone), (6, "a", Presence::Gone), (7, "b", Presence::There)];
        for (seq, event_id, fate) in table {
            assert_eq!(found.presence(&[5, 6, 7], seq, event_id), fate, "{seq} {event_id}");
        }
        assert_eq!(found.presence(&[5], 7, "b"), Presence::Unknown, "it was found for another receipt");
        assert_eq!(Found::All.presence(&[5, 6], 5, "a"), Presence::There);
        assert_eq!(Found::All.presence(&[5, 6], 7, "a"), Presence::Unknown, "there is no room for it in memory");
    }
}
