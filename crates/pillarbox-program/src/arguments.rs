//! Options that several programs have, and the refusal of a command line.

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pillarbox::run::Mode;

/// The help text of `--store`.
pub const STORE_HELP: &str =
    "The database: `sqlite://PATH`, `PATH.db`, `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`";

/// The delivery mode. All nodes of an outbox have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ModeArg {
    /// One node at a time; others stand by.
    SingleNode,
    /// Any number of nodes; each delivers the events it has claimed.
    MultiNode,
    /// Any number of nodes; each delivers the keys of its partitions, the events of a key in order.
    Partitioned,
    /// One node at a time; it delivers one event after the other, in the order of the table.
    Ordered,
}

impl ModeArg {
    /// The name of the mode, as in settings and tables.
    pub fn name(self) -> &'static str {
        Mode::from(self).name()
    }
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::SingleNode => Self::SingleNode,
            ModeArg::MultiNode => Self::MultiNode,
            ModeArg::Partitioned => Self::Partitioned,
            ModeArg::Ordered => Self::Ordered,
        }
    }
}

/// Reports a command line that is wrong, or the help that was asked for.
///
/// clap quotes an argument that it does not understand. That may be a URL in the wrong place, whose password must not
/// end up in a log.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let arguments: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    // A closed stream has no reader, so the errors of writing do not matter.
    if !error.use_stderr() || !arguments.iter().any(|argument| argument.contains('@')) {
        let _ = error.print();
    } else {
        let text = without_passwords(&error.to_string(), &arguments);
        let _ = write!(std::io::stderr(), "{text}");
    }
    if lacks_the_store(error) {
        let _ =
            writeln!(std::io::stderr(), "\nInstead of --store, the variable PILLARBOX_STORE may name the database.");
    }
    ExitCode::from(code)
}

/// True if `--store` was left out where it is needed.
fn lacks_the_store(error: &clap::Error) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(missing, Some(ContextValue::Strings(names)) if names.iter().any(|name| name.starts_with("--store")))
}

/// Replaces the text before the last `@` of an argument, but for the `://` and what comes before it.
fn without_passwords(text: &str, arguments: &[String]) -> String {
    arguments.iter().fold(text.to_owned(), |text, argument| {
        let credentials = argument.split_once("://").map_or(&**argument, |(_, rest)| rest).rsplit_once('@');
        match credentials {
            Some((credentials, _)) if !credentials.is_empty() => text.replace(credentials, "***"),
            _ => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_in_the_wrong_place_does_not_show_its_password() {
        for (argument, shown) in [
            ("postgres://me:s3cret@host/db", "postgres://***@host/db"),
            ("me:s3cret@host/db", "***@host/db"),
            ("shop.db", "shop.db"),
        ] {
            let arguments = ["migrate", argument, "--table", "shop"].map(str::to_owned);
            let text = without_passwords(&format!("unexpected argument '{argument}' found"), &arguments);
            assert_eq!(text, format!("unexpected argument '{shown}' found"));
        }
    }
}
