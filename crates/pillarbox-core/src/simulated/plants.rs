//! Planted bugs: each is a line of the engine that goes wrong while its name is planted in this thread.

use std::cell::Cell;

thread_local! {
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Plants a bug in this thread, in the place of the one before; `None` plants none.
pub fn plant(name: Option<&'static str>) {
    PLANTED.set(name);
}

/// True if this bug is planted.
#[must_use]
pub fn is(name: &str) -> bool {
    PLANTED.get().is_some_and(|planted| planted == name)
}
