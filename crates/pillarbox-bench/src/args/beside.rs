//! Benches in which events are written and delivered at the same time.

use clap::Args;
use pillarbox::error::ConfigError;

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
  pillarbox bench steady --store postgres://app@db/test --cold --mode partitioned --nodes 2")]
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
        let events = u64::from(self.rate) * u64::from(self.seconds);
        let counted = u32::try_from(events).ok().filter(|events| i64::from(*events) <= MOST_EVENTS);
        counted.ok_or_else(|| {
            let problem = format!("makes {events} events at {} in a second, and each is counted in memory", self.rate);
            ConfigError::new("--seconds", problem, format!("lower it, or --rate, to {MOST_EVENTS} events at most"))
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
}
