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
    /// True if the query compares the transaction's [`Tally`](crate::store::Tally) instead: it returns any row if all rows are there, and
    /// none if it cannot tell.
    pub is_of_tally: bool,
}

impl Probe {
    /// The probe of a commit that nobody wants to know about.
    #[must_use]
    pub const fn none() -> Self {
        Self { rows: Vec::new(), sql: None, is_of_tally: false }
    }
}

/// The answer to a probe.
#[derive(Debug)]
pub enum Found {
    /// These of the rows are there. Ascending.
    Rows(Vec<RowId>),
    /// All that were asked for are there.
    All,
    /// Some may be there and some not.
    Unknown,
}

impl Found {
    /// The rows that a look-up returned.
    #[must_use]
    pub fn new(mut rows: Vec<RowId>) -> Self {
        rows.sort_unstable_by(|a, b| (a.seq, a.event_id.as_str()).cmp(&(b.seq, b.event_id.as_str())));
        Self::Rows(rows)
    }

    /// The rows that a commit returned for its probe.
    pub(super) fn by(probe: &Probe, rows: Vec<RowId>) -> Self {
        match (probe.is_of_tally, rows.is_empty()) {
            (false, _) => Self::new(rows),
            (true, false) => Self::All,
            (true, true) => Self::Unknown,
        }
    }

    /// The fate of a row, if `probed`, which ascends, are the rows of its receipt that were asked for. Its event counts as well
    /// as its `seq`, which SQLite rolls back with the row, and gives again.
    pub fn presence(&self, probed: &[i64], seq: i64, event_id: &str) -> Presence {
        if probed.binary_search(&seq).is_err() {
            return Presence::Unknown;
        }
        let rows = match self {
            Self::Rows(rows) => rows,
            Self::All => return Presence::There,
            Self::Unknown => return Presence::Unknown,
        };
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
    }

    #[test]
    fn a_tally_answers_for_all_rows_that_were_asked_for_or_for_none() {
        let row = || vec![RowId { seq: 0, event_id: EventId::from_stored(""), handler: None }];
        let of = |is_of_tally, rows| Found::by(&Probe { rows: vec![5, 6], sql: None, is_of_tally }, rows);
        let table = [
            (of(true, row()), 5, Presence::There),
            (of(true, row()), 7, Presence::Unknown),
            (of(true, Vec::new()), 5, Presence::Unknown),
            (of(false, Vec::new()), 5, Presence::Gone),
        ];
        for (found, seq, fate) in table {
            assert_eq!(found.presence(&[5, 6], seq, "a"), fate, "{found:?} {seq}");
        }
    }
}
