use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Target;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox console --store postgres://app@db/shop
  pillarbox console --store shop.db --read-only
  pillarbox console --store postgres://app@db/shop --listen 0.0.0.0:9465 --password-file /run/secrets/console
  pillarbox console --store postgres://app@db/shop --users-file users --trace-link 'https://traces.example/trace/{trace_id}'")]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The address at which it is served: `IP:PORT`. One that other hosts reach needs a password. It speaks plain HTTP: TLS belongs to
    /// the proxy in front.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9465")]
    pub(crate) listen: SocketAddr,
    /// A file that holds the password, or token, of operators: at least 12 characters.
    #[arg(long, value_name = "FILE", alias = "token-file")]
    pub(crate) password_file: Option<PathBuf>,
    /// A file that holds the password of users that only read.
    #[arg(long, value_name = "FILE")]
    pub(crate) read_password_file: Option<PathBuf>,
    /// A file with a line `NAME:ROLE:PASSWORD` for each user; the role is `read` or `operate`.
    #[arg(long, value_name = "FILE")]
    pub(crate) users_file: Option<PathBuf>,
    /// Let nobody change anything.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Show no payload, but its size and type.
    #[arg(long)]
    pub(crate) mask_payloads: bool,
    /// The address of an event's trace, with `{trace_id}` in it.
    #[arg(long, value_name = "URL")]
    pub(crate) trace_link: Option<String>,
}
