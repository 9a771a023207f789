//! Planted bugs: each is a line of the engine that goes wrong while its name is active in this thread.

use std::cell::Cell;

thread_local! {
    static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Activates a bug in this thread, in the place of the one before; `None` activates none.
pub fn activate(name: Option<&'static str>) {
    ACTIVE.set(name);
}

/// True if this bug is active in this thread.
#[must_use]
pub fn is_active(name: &str) -> bool {
    ACTIVE.get().is_some_and(|active| active == name)
}
