//! Hash maps and sets, by the hasher that each needs. In the [simulation](crate::simulated) every hasher has a fixed seed, so
//! that iteration repeats.

/// The hasher of maps that are asked for each event: fast, seeded anew in each process.
#[cfg(not(simulated))]
pub(crate) use foldhash::fast::RandomState;

#[cfg(simulated)]
pub(crate) use foldhash::fast::FixedState as RandomState;

/// A map that is asked for each event.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set that is asked for each event.
pub(crate) type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// Maps and sets that the standard library's hasher guards against keys chosen to collide.
pub(crate) mod guarded {
    #[cfg(not(simulated))]
    use std::hash::RandomState;

    #[cfg(simulated)]
    use super::RandomState;

    pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
    pub(crate) type HashSet<T> = std::collections::HashSet<T, RandomState>;
}
