//! The places in the engine where the simulation plants bugs.

/// True if the simulation has planted the bug of this name here; false in everything else that is built.
#[cfg(not(simulated))]
pub const fn is(_name: &str) -> bool {
    false
}

#[cfg(simulated)]
pub use crate::simulated::plants::is;
