use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pillarbox_doctor::Thresholds;

use super::Target;
use crate::duration;

#[derive(Debug, Args)]
#[command(mut_arg("store", |store| {
    store.required(false).default_value("").hide_default_value(true)
}))]
#[command(after_help = "Examples:
  pillarbox doctor --store postgres://app@db/shop
  pillarbox doctor --config relay.toml --json | jq -r '.findings[].code'
  pillarbox doctor --store postgres://app@db/shop --watch 30s --pinned-after 1m
  pillarbox doctor --store postgres://app@db/shop --ignore postgres-replication-asynchronous")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Examine the databases and the brokers that this file of a relay names.
    #[arg(long, value_name = "FILE", conflicts_with = "table")]
    pub(crate) config: Option<PathBuf>,
    /// Name the checks that found nothing too.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Examine again and again, with this time between two, and print what has changed. With `--json` each examination is a line.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) watch: Option<Duration>,
    /// Leave out findings of this code, which are known and accepted.
    #[arg(long, value_name = "CODE")]
    pub(crate) ignore: Vec<String>,
    /// The longest time of a statement.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "2s")]
    pub(crate) statement_timeout: Duration,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// The limits from which on a condition is a finding.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// The age from which on an open transaction is a finding. [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pinned_after: Option<Duration>,
    /// The time for which a due event may wait. [default: 1m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    lag_after: Option<Duration>,
    /// The time since an event that a node holds became due. [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    held_after: Option<Duration>,
    /// The time for which rows of delivered events may stay. [default: 14d]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    kept_after: Option<Duration>,
    /// The difference of clocks that is a finding. [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    clock_offset: Option<Duration>,
    /// The number of DEAD events that is a finding. [default: 1]
    #[arg(long, value_name = "N")]
    dead: Option<u64>,
    /// The share of the connections in use that is a finding. [default: 80]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    connections_percent: Option<u8>,
    /// The number of dead rows, or of old versions of rows, that is a finding. [default: 1000000]
    #[arg(long, value_name = "N")]
    dead_rows: Option<u64>,
}

impl Limits {
    /// The thresholds, with the defaults of the library where nothing is given.
    pub(crate) fn thresholds(&self) -> Thresholds {
        let mut all = Thresholds::default();
        let set = |place: &mut Duration, given: Option<Duration>| *place = given.unwrap_or(*place);
        set(&mut all.pinned_after, self.pinned_after);
        set(&mut all.lag_after, self.lag_after);
        set(&mut all.held_after, self.held_after);
        set(&mut all.kept_after, self.kept_after);
        set(&mut all.clock_offset, self.clock_offset);
        all.dead = self.dead.unwrap_or(all.dead);
        all.connections_percent = self.connections_percent.unwrap_or(all.connections_percent);
        all.dead_rows = self.dead_rows.unwrap_or(all.dead_rows);
        all
    }
}
