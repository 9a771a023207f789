//! Benches in which events are written and delivered at the same time.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pillarbox::error::ConfigError;
use pillarbox_program::address::Address;

use super::MOST_EVENTS;
use crate::nodes::NodeSettings;
use pillarbox_program::arguments::ModeArg;

#[derive(Debug, Args)]
pub(crate) struct HotArgs {
    /// Events to write.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
    #[command(flatten)]
    pub(crate) writers: WritersArg,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench steady --store postgres://app@db/test --rate 5000 --seconds 60
  pillarbox bench steady --store postgres://app@db/test --cold --mode partitioned --nodes 2
  pillarbox bench steady --store postgres://app@db/test --cold --seconds 300 --hold-snapshot 60m --plot held.svg")]
pub(crate) struct SteadyArgs {
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) writers: WritersArg,
    /// Deliver from the table, as if another process had written the events: nodes are not notified of commits.
    #[arg(long)]
    pub(crate) cold: bool,
    /// The delivery mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    /// Outboxes that deliver at the same time, in this process, each over its own connections.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) nodes: u8,
    /// After that, do the same for this long, such as 60m, while an idle transaction holds a snapshot open, and compare the two.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) hold_snapshot: Option<Duration>,
    /// Draw into this file, as SVG, the time from commit to handler while the snapshot is held.
    #[arg(long, value_name = "FILE", requires = "hold_snapshot")]
    pub(crate) plot: Option<PathBuf>,
}

impl SteadyArgs {
    /// The events that are written while the snapshot is held, if one is.
    ///
    /// # Errors
    /// It does not apply to the database, or there are none or more than can be counted.
    pub(crate) fn events_beside_snapshot(&self, address: &Address) -> Result<Option<u32>, ConfigError> {
        const OPTION: &str = "--hold-snapshot";
        let Some(held) = self.hold_snapshot else { return Ok(None) };
        if matches!(address, Address::Sqlite(_)) {
            let problem = "does not apply to SQLite, where readers keep no row from being removed";
            return Err(ConfigError::new(OPTION, problem, "leave it out, or name another database"));
        }
        let seconds = u32::try_from(held.as_secs()).unwrap_or(u32::MAX);
        Pace { seconds, ..self.pace }.events_of(OPTION).map(Some)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) writers: WritersArg,
    /// Milliseconds between the looks of the node that finds what was inserted by SQL alone.
    #[arg(long, value_name = "MS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) look_every: u16,
}

#[derive(Debug, Args)]
pub(crate) struct MixedArgs {
    /// Events to write.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
    #[command(flatten)]
    pub(crate) writers: WritersArg,
    /// The delivery mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    #[command(flatten)]
    pub(crate) looks: LooksArg,
}

/// The times at which a node looks at the table.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LooksArg {
    /// Milliseconds between looks at the table, instead of 50 to 5,000: how soon a node finds what other programs insert.
    #[arg(long, value_name = "MS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) look_every: Option<u16>,
}

impl LooksArg {
    /// The settings of a node in `mode`.
    pub(crate) fn settings(self, mode: ModeArg) -> NodeSettings {
        let mut settings = NodeSettings::from(mode);
        if let Some(every) = self.look_every {
            settings.look_every(every);
        }
        settings
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WritersArg {
    /// Tasks that write at the same time, each over its own connection where the database allows it.
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) writers: u16,
}

/// The rate at which events are written, and the duration.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Pace {
    /// Events to write per second.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Seconds of writing at that rate; writers that cannot keep up take longer.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
}

impl Pace {
    /// Events in all.
    ///
    /// # Errors
    /// There are more events than can be counted.
    pub(crate) fn events(self) -> Result<u32, ConfigError> {
        self.events_of("--seconds")
    }

    /// As [`events`](Self::events), where the `option` gives the duration.
    fn events_of(self, option: &'static str) -> Result<u32, ConfigError> {
        let events = u64::from(self.rate) * u64::from(self.seconds);
        let counted = u32::try_from(events).ok().filter(|events| (1..=MOST_EVENTS).contains(&i64::from(*events)));
        counted.ok_or_else(|| {
            let problem = format!("makes {events} events at {} in a second, and each is counted in memory", self.rate);
            ConfigError::new(
                option,
                problem,
                format!("choose it and --rate so that there are 1 to {MOST_EVENTS} events"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_as_long_as_its_events_can_be_counted() {
        let pace = |rate, seconds| Pace { rate, seconds }.events();
        assert_eq!(pace(1_000, 20), Ok(20_000));
        assert_eq!(pace(100_000, 100), Ok(10_000_000));
        assert_eq!(pace(100_000, 101).map_err(|error| error.field()), Err("--seconds"));
        assert_eq!(pace(100_000, 86_400).map_err(|error| error.field()), Err("--seconds"));
    }

    #[test]
    fn a_snapshot_is_held_for_as_long_as_events_can_be_counted_and_by_databases_that_have_one() {
        let events = |held, address: &Address| {
            let args = SteadyArgs {
                pace: Pace { rate: 2_000, seconds: 20 },
                writers: WritersArg { writers: 8 },
                cold: true,
                mode: ModeArg::SingleNode,
                nodes: 1,
                hold_snapshot: held,
                plot: None,
            };
            args.events_beside_snapshot(address).map_err(|error| error.field())
        };
        let postgres = Address::Postgres(String::new());
        assert_eq!(events(None, &postgres), Ok(None));
        assert_eq!(events(Some(Duration::from_secs(3600)), &postgres), Ok(Some(7_200_000)));
        for wrong in [Duration::from_millis(900), Duration::from_secs(3 * 3600), Duration::MAX] {
            assert_eq!(events(Some(wrong), &postgres), Err("--hold-snapshot"), "{wrong:?}");
        }
        assert_eq!(events(Some(Duration::from_secs(1)), &Address::parse("bench.db").unwrap()), Err("--hold-snapshot"));
    }
}
