//! From the table to the queue: when to poll, where to begin, how much to take.

mod fetch_size;
mod listener;
mod operator_changes;
mod ordered_poller;
mod passed_over;
mod poller;
mod promote_due;
mod read_cursor;
mod safe_point;
mod sweep;

use std::time::Duration;

use fetch_size::FetchSize;
pub(crate) use listener::listen;
pub(crate) use operator_changes::{OperatorChanges, OperatorChangesLoop};
pub(crate) use ordered_poller::{OrderedPoller, ReadState};
pub(crate) use passed_over::PassedOver;
pub(crate) use poller::Poller;
use promote_due::promote_due;
pub(crate) use read_cursor::ReadCursor;
use safe_point::SafePoint;

/// The shortest pause after a read that brought nothing but rows which were left in the table, and would bring them again.
const MIN_FRUITLESS_PAUSE: Duration = Duration::from_millis(20);

/// Time that reading waits for a full class before it passes the class over.
const MAX_WAIT_FOR_ROOM: Duration = Duration::from_millis(100);
/// A fetch that takes longer than this has passed over much that it need not pass over again.
const SLOW_FETCH: Duration = Duration::from_millis(5);
