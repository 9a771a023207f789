//! The hooks of the engine: processes and planted bugs. Built without `cfg(simulated)` this crate compiles and cannot run.

#[cfg(simulated)]
pub use hooked::*;
#[cfg(not(simulated))]
pub use unhooked::*;

/// True if this was built with the hooks of the engine.
pub const HOOKED: bool = cfg!(all(simulated, tokio_unstable));

/// A row of the table, as the checks see it.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    /// Its place in the order of the table.
    pub seq: i64,
    /// The event.
    pub event: &'a pillarbox_core::event::Envelope,
    /// The handler it is for.
    pub handler: Option<&'a str>,
    /// Its state.
    pub status: pillarbox_core::row::Status,
    /// Its partition.
    pub partition: Option<u8>,
    /// Its failed calls.
    pub attempts: u32,
    /// The number of times that it was replayed, from DEAD to NEW.
    pub replays: u32,
    /// The due time.
    pub available_at: Option<pillarbox_core::clock::Timestamp>,
    /// The holder, as the row names it.
    pub locked_by: Option<&'a str>,
}

#[cfg(simulated)]
mod hooked {
    use pillarbox_core::handle::{HandlerError, Outcome};
    use pillarbox_memory::MemoryStore;

    use super::RowView;

    use pillarbox_core::handle::HandlerErrorKind;

    use crate::check::Ending;

    pub use pillarbox_core::simulated::plants::plant;
    pub use pillarbox_core::simulated::{Process, panics};

    /// Shows every committed row.
    pub fn visit(store: &MemoryStore, mut visit: impl FnMut(RowView<'_>)) {
        store.inspect().visit(|row| {
            visit(RowView {
                seq: row.seq,
                event: row.event,
                handler: row.handler,
                status: row.status,
                partition: row.partition,
                attempts: row.attempts,
                replays: row.replays,
                available_at: row.available_at,
                locked_by: row.locked_by,
            });
        });
    }

    /// The ending of a call, by its answer.
    #[must_use]
    pub fn ending(answer: &Result<Outcome, HandlerError>) -> Ending {
        match answer {
            Ok(Outcome::Done) => Ending::Done,
            Ok(_) => Ending::Deferred,
            Err(error) if error.is_deferred() || error.is_unroutable() => Ending::Deferred,
            Err(error) => match error.kind() {
                HandlerErrorKind::Unrecoverable => Ending::Hopeless,
                _ => Ending::Failed,
            },
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
}

#[cfg(not(simulated))]
mod unhooked {
    use pillarbox_core::handle::{HandlerError, Outcome};
    use pillarbox_memory::MemoryStore;

    use super::RowView;
    use crate::check::Ending;

    /// Does nothing: there are no plants without the hooks.
    pub fn plant(_name: Option<&'static str>) {}

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

    /// Well, or not: nothing else is known without the hooks.
    #[must_use]
    pub fn ending(answer: &Result<Outcome, HandlerError>) -> Ending {
        if answer.is_ok() { Ending::Done } else { Ending::Failed }
    }

    /// Shows every committed row.
    pub fn visit(store: &MemoryStore, mut visit: impl FnMut(RowView<'_>)) {
        for row in store.inspect().rows() {
            visit(RowView {
                seq: row.seq,
                event: &row.event,
                handler: row.handler.as_deref(),
                status: row.status,
                partition: row.partition,
                attempts: row.attempts,
                replays: row.replays,
                available_at: row.available_at,
                locked_by: row.locked_by.as_deref(),
            });
        }
    }

    /// A runtime of one thread with a virtual clock.
    ///
    /// # Errors
    /// The operating system's.
    pub fn runtime(_seed: u64) -> std::io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
    }
}
