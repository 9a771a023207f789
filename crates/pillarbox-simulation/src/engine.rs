//! The hooks of the engine: processes and planted bugs. Built without `cfg(simulated)` this crate compiles and cannot run.

use pillarbox_core::handle::{HandlerError, HandlerErrorKind, Outcome};

use crate::check::Ending;

#[cfg(simulated)]
pub use hooked::*;
#[cfg(not(simulated))]
pub use unhooked::*;

/// True if this was built with the hooks of the engine.
pub const HOOKED: bool = cfg!(all(simulated, tokio_unstable));

/// The ending of a call, by its answer.
#[must_use]
pub fn ending(answer: &Result<Outcome, HandlerError>) -> Ending {
    match answer {
        Ok(outcome) if outcome.is_delivered() => Ending::Done,
        Ok(_) => Ending::Deferred,
        Err(error) if error.is_deferred() || error.is_unroutable() => Ending::Deferred,
        Err(error) if error.kind() == HandlerErrorKind::Unrecoverable => Ending::Hopeless,
        Err(_) => Ending::Failed,
    }
}

/// A runtime of one thread with a virtual clock, whose choices follow from the seed.
///
/// # Errors
/// The operating system's.
pub fn runtime(seed: u64) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    #[cfg(not(tokio_unstable))]
    let _ = seed;
    builder.build()
}

#[cfg(simulated)]
mod hooked {
    use pillarbox_memory::MemoryStore;

    pub use pillarbox_core::simulated::planted_bug::activate;
    pub use pillarbox_core::simulated::{Process, panics};
    pub use pillarbox_memory::RowView;

    /// Shows every committed row.
    pub fn visit(store: &MemoryStore, visit: impl FnMut(RowView<'_>)) {
        store.inspect().visit(visit);
    }
}

#[cfg(not(simulated))]
mod unhooked {
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::row::Status;
    use pillarbox_memory::MemoryStore;

    /// A row of the table, as the checks see it.
    #[derive(Debug, Clone, Copy)]
    #[expect(missing_docs, reason = "the fields are those of MemoryRow")]
    pub struct RowView<'a> {
        pub seq: i64,
        pub event: &'a Envelope,
        pub handler: Option<&'a str>,
        pub status: Status,
        pub partition: Option<u8>,
        pub attempts: u32,
        pub replays: u32,
        pub available_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub locked_by: Option<&'a str>,
    }

    /// Shows none: nothing runs without the hooks.
    pub fn visit(_store: &MemoryStore, _visit: impl FnMut(RowView<'_>)) {}

    /// Does nothing: no bug is planted without the hooks.
    pub fn activate(_name: Option<&'static str>) {}

    /// None: no task is watched without the hooks.
    #[must_use]
    pub fn panics() -> Vec<String> {
        Vec::new()
    }

    /// A process that cannot stand still or die.
    #[derive(Debug, Clone)]
    pub struct Process(String);

    impl Process {
        /// A process of this name.
        #[must_use]
        pub fn new(name: impl Into<String>, _seed: u64, _yields: u8) -> Self {
            Self(name.into())
        }

        /// The name that it was given.
        #[must_use]
        pub fn name(&self) -> &str {
            &self.0
        }

        /// The future as it is.
        pub fn run<F: Future + Send + 'static>(&self, future: F) -> F {
            future
        }

        /// Does nothing.
        pub fn stop(&self) {}

        /// Does nothing.
        pub fn resume(&self) {}

        /// Does nothing.
        pub fn kill(&self) {}

        /// True always.
        #[must_use]
        pub fn is_alive(&self) -> bool {
            true
        }

        /// False always.
        #[must_use]
        pub fn is_stopped(&self) -> bool {
            false
        }
    }
}
