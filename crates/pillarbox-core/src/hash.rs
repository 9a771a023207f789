//! Hash maps and sets, by the hasher that each needs. In the simulation every hasher has a fixed seed, so
//! that iteration repeats.

/// The hasher of maps that are asked for each event: fast, seeded anew in each process.
#[cfg(not(simulated))]
pub use foldhash::fast::RandomState;

#[cfg(simulated)]
pub use foldhash::fast::FixedState as RandomState;

/// A map that is asked for each event.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set that is asked for each event.
pub type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// Maps and sets that the standard library's hasher guards against keys chosen to collide.
pub mod guarded {
    #[cfg(not(simulated))]
    use std::hash::RandomState;

    #[cfg(simulated)]
    use super::RandomState;

    pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
    pub type HashSet<T> = std::collections::HashSet<T, RandomState>;
}
