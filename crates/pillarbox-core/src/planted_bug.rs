//! Fail points: the places in the engine where the simulation plants bugs.

/// True if the simulation has activated the bug of this name; always false in every other build.
#[cfg(not(simulated))]
pub const fn is_active(_name: &str) -> bool {
    false
}

#[cfg(simulated)]
pub use crate::simulated::planted_bug::is_active;
