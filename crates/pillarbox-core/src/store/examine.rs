use async_trait::async_trait;

use super::Store;
use crate::examine::{Checked, Thresholds};

/// A view of a store that a doctor examines it through: one connection of its own that takes no lock which a writer or a node would wait
/// for, each statement of which the database ends by itself.
///
/// Its reads, such as those of [`Admin`](super::Admin), have the same limit. The caller [closes](Store::close) the view, which
/// leaves the store as it is.
#[async_trait]
pub trait Examine: Store {
    /// Looks for the conditions of this kind of database that harm an outbox. A check that fails, or that the user's privileges do not
    /// allow, says so in its place; none is left out.
    async fn examine(&self, thresholds: &Thresholds) -> Vec<Checked>;
}
