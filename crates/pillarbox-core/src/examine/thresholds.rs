use std::time::Duration;

/// The limits from which on a condition is a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thresholds {
    /// The age from which on an open transaction is a finding. Default: 5 minutes.
    pub pinned_after: Duration,
    /// The time for which a due event may wait. Default: 1 minute.
    pub lag_after: Duration,
    /// The age, counted from its due time, from which on an event that a living node holds is a finding. Default: 10 minutes.
    pub held_after: Duration,
    /// The time for which rows of delivered events may stay. Default: 14 days, twice the default of `purge.done_after`.
    pub kept_after: Duration,
    /// The difference from which on a clock is a finding. Default: 1 s.
    pub clock_offset: Duration,
    /// The number of DEAD events from which on they are a finding. Default: 1.
    pub dead: u64,
    /// The share of the connections from which on their number is a finding, in percent. Default: 80.
    pub connections_percent: u8,
    /// The number of dead rows that vacuum has left from which on it is a finding; on MySQL, of old versions of rows. Default: 1,000,000.
    pub dead_rows: u64,
    /// The size of a log beside a database file from which on it is a finding, in bytes: SQLite's WAL. Default: 256 MiB.
    pub wal_bytes: u64,
    /// The room on the disk of a database file below which it is a finding, in bytes. Default: 1 GiB.
    pub free_bytes: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Self {
            pinned_after: Duration::from_secs(5 * MINUTE),
            lag_after: Duration::from_secs(MINUTE),
            held_after: Duration::from_secs(10 * MINUTE),
            kept_after: Duration::from_secs(14 * 24 * 60 * MINUTE),
            clock_offset: Duration::from_secs(1),
            dead: 1,
            connections_percent: 80,
            dead_rows: 1_000_000,
            wal_bytes: 256 << 20,
            free_bytes: 1 << 30,
        }
    }
}
