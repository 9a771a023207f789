use std::sync::Arc;

use crate::hash::HashMap;
use crate::lock::Mutex;

use super::Receipts;

/// The identity of a connection while a transaction is open on it: the address of an object of the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId(usize);

impl ConnectionId {
    /// The identity of what `connection` refers to.
    #[must_use]
    pub fn of<T: ?Sized>(connection: &T) -> Self {
        Self(std::ptr::from_ref(connection).cast::<()>().addr())
    }
}

/// The guards that are open, by the connection of each.
///
/// A guard dereferences to the driver's connection, and functions take that: what they write on it belongs to the guard all
/// the same. While a guard is open, its connection keeps its place and so its address; nothing else can have that.
#[derive(Debug, Default)]
pub struct OpenTransactions(Mutex<HashMap<ConnectionId, Arc<Receipts>>>);

impl OpenTransactions {
    /// A guard opens: what is written on `connection` goes to `receipts` until the answer is dropped.
    pub(super) fn open(self: &Arc<Self>, connection: ConnectionId, receipts: &Arc<Receipts>) -> OpenTransaction {
        self.0.lock().insert(connection, Arc::clone(receipts));
        OpenTransaction { open: Arc::clone(self), connection }
    }

    /// The receipts of the guard that is open on `connection`.
    pub fn find(&self, connection: ConnectionId) -> Option<Arc<Receipts>> {
        self.0.lock().get(&connection).cloned()
    }
}

/// An open guard's entry; dropping it removes it.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    open: Arc<OpenTransactions>,
    connection: ConnectionId,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.open.0.lock().remove(&self.connection);
    }
}
