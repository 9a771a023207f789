/// A way to divide verdicts into two parts, either of which may be recorded without the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// The lower and the upper half of their rows, by `seq`.
    Halves,
    /// The verdicts of even partitions, and those of odd ones: the rows of each part lie between those of the other.
    Partitions,
}
