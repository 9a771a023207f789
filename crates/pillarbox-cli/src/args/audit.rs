use clap::Args;

use super::Target;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox audit --store postgres://app@db/shop
  pillarbox audit --store postgres://app@db/shop --limit 500 --json")]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The most actions to list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Only actions before this number: the last one of the page before.
    #[arg(long, value_name = "ID")]
    pub(crate) below: Option<i64>,
}
