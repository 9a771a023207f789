//! The modes as types, so that a builder offers what applies to its mode and nothing else.

/// One node delivers at a time; further nodes on the same table wait as standbys.
///
/// It costs the database the least, and has the hot path: an event committed here is handled from memory. There is no
/// order between events.
#[derive(Debug, Clone, Copy)]
pub enum SingleNode {}

/// Any number of nodes deliver; each row is claimed by one of them. There is no order between events.
///
/// Events committed through the guard of [`Outbox::begin`](super::Outbox::begin) are handled from memory.
#[derive(Debug, Clone, Copy)]
pub enum MultiNode {}

/// Any number of nodes deliver, each the events of some of the 256 partitions that keys are grouped into. The events of a key
/// are delivered in the order in which they were written, one at a time, whichever node has them.
///
/// There is no delivery from memory. A commit wakes this node if it owns the key's partition; other owners are woken only with
/// [`wake_up`](super::OutboxBuilder::wake_up), and otherwise find the event at their next poll.
#[derive(Debug, Clone, Copy)]
pub enum Partitioned {}

/// One node with one worker delivers in the order of the table; further nodes wait as standbys. No event overtakes one
/// that fails. There is no hot path.
#[derive(Debug, Clone, Copy)]
pub enum Ordered {}

/// Nothing is delivered here: a relay or a reader of the database's log does it elsewhere.
#[derive(Debug, Clone, Copy)]
pub enum WriterOnly {}

/// A mode that is known when the program runs. A setting that it lacks is refused when the outbox starts.
#[derive(Debug, Clone, Copy)]
pub enum Any {}

/// A mode that delivers, or may.
pub trait DeliveringMode: sealed::Sealed {}

/// A mode that handles several events at once.
#[diagnostic::on_unimplemented(
    message = "mode `{Self}` does not handle several events at once",
    label = "not a setting of this mode",
    note = "mode `ordered` handles one event at a time, in the order of the table: leave it out there, or choose `Outbox::partitioned`, where events of \
            different keys are handled at once and those of a key in order"
)]
pub trait Parallel: DeliveringMode {}

impl DeliveringMode for SingleNode {}
impl DeliveringMode for MultiNode {}
impl DeliveringMode for Partitioned {}
impl DeliveringMode for Ordered {}
impl DeliveringMode for Any {}
impl Parallel for SingleNode {}
impl Parallel for MultiNode {}
impl Parallel for Partitioned {}
impl Parallel for Any {}

/// A mode that delivers from memory.
pub trait HotPathMode: Parallel {}

impl HotPathMode for SingleNode {}
impl HotPathMode for MultiNode {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::SingleNode {}
    impl Sealed for super::MultiNode {}
    impl Sealed for super::Partitioned {}
    impl Sealed for super::Ordered {}
    impl Sealed for super::WriterOnly {}
    impl Sealed for super::Any {}
}
