use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use super::Statement;
use crate::row::NewRow;

/// A tally of writes that a transaction keeps in its session, and that goes back with them when they are rolled back to a savepoint.
///
/// Each write adds a random number to it. Before the commit one comparison tells that all of them still stand, without a look at
/// the table.
pub trait Tally: fmt::Debug + Send + Sync {
    /// The statements of [`Store::insert`](super::Store::insert), which also add `number` to the tally of their transaction.
    fn insert<'a>(&self, rows: &'a [NewRow], number: i64) -> Vec<Statement<'a>>;

    /// A query for the transaction to run before its commit, which returns one row if the tally is `sum`, the exclusive or of the
    /// numbers of all its writes, and no event was deleted since the first of them; none otherwise. It has no values to bind, and the columns of
    /// [`Store::identify_sql`](super::Store::identify_sql).
    ///
    /// # Behavior
    /// - `a_tally_tells_that_all_writes_stand`
    fn sql(&self, sum: i64) -> String;
}

/// The number of a write, random so that no two writes of a transaction cancel each other out.
pub(crate) fn number() -> i64 {
    RandomState::new().hash_one(()).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_write_has_the_number_of_another() {
        let numbers: std::collections::HashSet<i64> = (0..1000).map(|_| number()).collect();
        assert_eq!(numbers.len(), 1000);
    }
}
