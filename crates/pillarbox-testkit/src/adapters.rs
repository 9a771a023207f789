//! For tests of adapters: the suite that each of them runs, an insert of any statement, and rows of a table `kept (seq, event_id)`
//! that a commit is asked for.

mod inbox;
#[doc(hidden)]
pub mod suite;

pub use suite::{Driver, InnerOf, Outcome, TransactionOf};

use std::sync::Arc;

use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Bind, Insert, Probe, Statement};

/// The insert of one statement.
#[must_use]
pub fn insert<'a>(sql: &str, binds: Vec<Bind<'a>>) -> Insert<'a> {
    Insert { rows: &[], statements: vec![Statement { sql: Arc::from(sql), binds, reusable: true }] }
}

/// A statement that keeps a row.
#[must_use]
pub fn keep(seq: i64) -> String {
    format!("INSERT INTO kept VALUES ({seq}, 'e-{seq}')")
}

/// A probe for the rows 1 to 6.
#[must_use]
pub fn probe() -> Probe {
    let sql = "SELECT seq, event_id, NULL FROM kept WHERE seq IN (1, 2, 3, 4, 5, 6)";
    Probe { rows: (1..=6).collect(), sql: Some(sql.to_owned()) }
}

/// The rows that a probe finds.
#[must_use]
pub fn kept<const N: usize>(seqs: [i64; N]) -> Vec<RowId> {
    seqs.map(|seq| RowId { seq, event_id: EventId::from_stored(&format!("e-{seq}")), handler: None }).into()
}
