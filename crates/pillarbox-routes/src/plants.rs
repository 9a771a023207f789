//! The places where the simulation plants bugs.

/// True if the simulation has planted the bug of this name here; false in everything else that is built.
#[cfg(not(simulated))]
pub(crate) const fn is(_name: &str) -> bool {
    false
}

#[cfg(simulated)]
pub(crate) use pillarbox_core::simulated::plants::is;
