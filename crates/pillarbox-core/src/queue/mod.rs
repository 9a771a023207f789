//! Between writing and handling: what is in memory.

use crate::write::NewRow;

/// Stub.
#[derive(Debug)]
pub(crate) struct Intake;

impl Intake {
    pub(crate) fn announce(&self, _rows: &[NewRow], _seqs: &[i64]) {}
    pub(crate) fn committed(&self, _rows: &[NewRow], _seqs: &[i64]) {}
    pub(crate) fn look_for(&self, _seqs: &[i64]) {}
    pub(crate) fn forget(&self, _seqs: &[i64]) {}
}
