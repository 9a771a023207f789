use pillarbox_core::write::NewRow;

use super::MemoryError;
use super::tables::State;

/// A unique key, and the handler among whose events it is unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UniqueKey {
    key: Box<str>,
    handler: Option<Box<str>>,
}

impl UniqueKey {
    /// The unique key of a row, if it has one.
    pub(super) fn of(row: &NewRow) -> Option<Self> {
        Some(Self { key: row.unique_key()?.into(), handler: row.handler().map(Box::from) })
    }
}

impl State {
    /// Frees the unique key of `row` for it, if it has one, and returns the row that is pending with it. A row that has ended gives it up.
    pub(super) fn take_unique_key(
        &mut self,
        row: &NewRow,
        is_own: impl Fn(i64) -> bool,
    ) -> Result<Option<i64>, MemoryError> {
        let Some(key) = UniqueKey::of(row) else { return Ok(None) };
        let Some(holder) = self.unique.get(&key).copied() else { return Ok(None) };
        if let Some(other) = self.rows().get(&holder) {
            if other.status.is_pending() {
                return Ok(Some(holder));
            }
            if self.has(row) {
                return Err(MemoryError::DuplicateEvent { id: row.envelope().id().clone() });
            }
            if let Some(other) = self.row_mut(holder) {
                other.gave_up_key = true;
            }
            self.unique.remove(&key);
            return Ok(None);
        }
        if is_own(holder) { Ok(Some(holder)) } else { Err(MemoryError::UniqueKeyInUse { key: key.key }) }
    }

    /// Forgets the keys of rows that are not committed, whose transactions are lost.
    pub(super) fn forget_open_keys(&mut self) {
        let mut keys = std::mem::take(&mut self.unique);
        keys.retain(|_, seq| self.rows().contains_key(seq));
        self.unique = keys;
    }
}
