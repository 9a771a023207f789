use std::time::Duration;

use clap::{Args, ValueEnum};
use pillarbox::maintain::{NewPause, Pause, PauseKind};

use super::{Target, person};
use crate::duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox pause --store postgres://app@db/shop type order.placed --reason 'the partner is down'
  pillarbox pause --store postgres://app@db/shop handler mailer --for 2h
  pillarbox pauses --store postgres://app@db/shop
  pillarbox resume --store postgres://app@db/shop type order.placed")]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) named: PauseName,
    /// The reason, for the log of the nodes and for `pillarbox pauses`; at most 1,000 characters.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// The person or program that pauses it; the user of this process unless set.
    #[arg(long, visible_alias = "as", value_name = "NAME", value_parser = person)]
    pub(crate) by: Option<String>,
    /// Resume it by itself after this time, such as `30m` or `2h`, by the database's clock.
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub(crate) length: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox resume --store postgres://app@db/shop type order.placed
  pillarbox resume --store postgres://app@db/shop handler mailer --json")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) named: PauseName,
    /// The person or program that resumes it, for `pillarbox audit`; the user of this process unless set.
    #[arg(long, visible_alias = "as", value_name = "NAME", value_parser = person)]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox pauses --store postgres://app@db/shop
  pillarbox pauses --store postgres://app@db/shop --json")]
pub(crate) struct PausesArgs {
    #[command(flatten)]
    pub(crate) target: Target,
}

/// The time after which a pause ends by itself.
fn length(text: &str) -> Result<Duration, String> {
    let length = duration::parse(text).map_err(|_| "it is no time, such as `30m` or `2h`".to_owned())?;
    let pause = NewPause { length: Some(length), ..NewPause::new(PauseKind::Type, "any") };
    let days = Pause::MAX_LENGTH.as_secs() / (24 * 3600);
    pause
        .check()
        .map_err(|_| format!("set a time from 1ms to {days} days, or leave it out to pause until it is resumed"))?;
    Ok(length)
}

/// An event type or a handler.
#[derive(Debug, Args)]
pub(crate) struct PauseName {
    /// The kind of what is named.
    #[arg(value_name = "KIND")]
    pub(crate) kind: KindArg,
    /// The exact event type, or the name of the handler.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// The kind of what is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// An event type, whatever handler takes its events.
    Type,
    /// A handler that has a name.
    Handler,
}

impl From<KindArg> for PauseKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Type => Self::Type,
            KindArg::Handler => Self::Handler,
        }
    }
}
