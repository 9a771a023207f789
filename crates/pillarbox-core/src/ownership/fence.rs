/// The basis of a node's right to a row, against which a verdict is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// The node owns the partitions: all rows are its own.
    Table,
    /// The node owns the row's partition.
    Partition,
    /// The row names the node in `locked_by`.
    Row,
}
