//! The engine's own proof that the table is complete up to a `seq`: the very text of `src/claim/safe_point.rs`, compiled once more
//! here, where its decision can be called and its state compared. The names that it takes from its crate are in `main.rs`.

use std::sync::LazyLock;

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/claim/safe_point.rs"));

/// The length of a tick: two of them are the longest transaction of a database that does not tell of its transactions.
const TICK: Duration = Duration::from_secs(MAX_TRANSACTION_AGE.as_secs() / 2);

impl SafePoint {
    /// Learns from an answer that came at this tick.
    pub(crate) fn learn_at(&mut self, writers: Writers, tick: u8) {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        self.learn(writers, *START + TICK * u32::from(tick));
    }
}
