use std::path::PathBuf;

use clap::Args;

use pillarbox_program::arguments::STORE_HELP;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench all --store postgres://app@db/test --report report    # takes about ten minutes
  pillarbox bench all --store bench.db --report report --quick          # half a minute, and no measurement")]
pub(crate) struct AllArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// The folder for the report: `report.md`, `report.json` and pictures. It is created if it is missing; other files
    /// in it are left alone.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: PathBuf,
    /// Run everything with very small numbers: to see that it works, not to measure.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the report as JSON too.
    #[arg(long)]
    pub(crate) json: bool,
}
