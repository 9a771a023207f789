use std::panic::{AssertUnwindSafe, catch_unwind};

use pillarbox_core::handle::{BatchHandler, Delivery};

/// The lane of an event. Whatever its number is computed by is the user's code: where that panics, the event has a lane of such events, and is
/// handled like any other. The reader and the queue must not pay for it.
pub(crate) fn lane(handler: &dyn BatchHandler, delivery: &Delivery) -> u64 {
    catch_unwind(AssertUnwindSafe(|| handler.lane(delivery))).unwrap_or(u64::MAX)
}

/// True if all events of this one's type are of its lane, and the user's code says so without a panic.
pub(crate) fn has_type_alone(handler: &dyn BatchHandler, delivery: &Delivery) -> bool {
    catch_unwind(AssertUnwindSafe(|| handler.has_type_alone(delivery))).unwrap_or(false)
}
