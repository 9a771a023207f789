//! The log on stderr: its levels and its sources.

use std::ffi::OsString;
use std::str::FromStr as _;

use thiserror::Error;
use tracing::Level;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{Directive, EnvFilter, FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Identity, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::report::{note, plain};

/// Client libraries whose lines hold messages or credentials, at `warn` as well: a message that RabbitMQ returns is
/// logged with its body. The publishers report their errors. The pool of connections logs each lost connection with
/// neither its owner nor the reason; the store's errors have both.
const SILENT: [&str; 3] = ["async_nats", "lapin", "deadpool.postgres"];

/// The reason why `RUST_LOG` sets no level.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum LogError {
    /// It is no UTF-8.
    #[error("the variable RUST_LOG is no text; {FORMS}")]
    NotText,
    /// A part of it is neither a level nor a target with one.
    #[error("the variable RUST_LOG has `{0}` in it, which cannot be read; {FORMS}")]
    Malformed(String),
    /// A word alone is no level. It would be read as the name of a target, and all others would log nothing: `inof` would
    /// silence the program.
    #[error("the variable RUST_LOG has `{0}` in it, which is no level; {FORMS}, such as `{0}=trace`")]
    NoLevel(String),
}

/// The form of `RUST_LOG`.
const FORMS: &str = "write `error`, `warn`, `info`, `debug`, `trace` or `off`, or TARGET=LEVEL";

/// Starts the log: from `level` on unless `RUST_LOG` says otherwise, as lines of JSON or as text. It goes to stderr, so
/// that stdout can be piped, with colours only on a terminal. A `RUST_LOG` that cannot be read changes nothing, and is reported.
pub fn start(level: &str, json: bool) {
    let filter = filter(level).unwrap_or_else(|error| {
        note(&format!("warning: {error}; the level is `{level}` now"));
        EnvFilter::new(level)
    });
    install(filter, json, None::<Identity>);
}

/// Starts the log with the levels of `filter`, and sends traces where there are any.
#[cfg(feature = "otlp")]
pub fn start_with(filter: EnvFilter, json: bool, traces: Option<&crate::traces::Traces>) {
    install(filter, json, traces.map(crate::traces::Traces::layer));
}

/// The levels that `RUST_LOG` asks for; `level` for everything where it is empty or not set.
///
/// # Errors
/// When it cannot be read, or has a word alone in it that is neither a level nor the beginning of one of Pillarbox's own targets.
pub fn filter(level: &str) -> Result<EnvFilter, LogError> {
    chosen(std::env::var_os(EnvFilter::DEFAULT_ENV), level)
}

fn chosen(value: Option<OsString>, level: &str) -> Result<EnvFilter, LogError> {
    let value = value.unwrap_or_default().into_string().map_err(|_| LogError::NotText)?;
    // The parser takes white space for a part of names.
    let directives: Vec<&str> = value.split(',').map(str::trim).filter(|directive| !directive.is_empty()).collect();
    if directives.is_empty() {
        return Ok(EnvFilter::new(level));
    }
    for directive in &directives {
        let target = directive.split(['=', '[']).next().unwrap_or_default();
        if Directive::from_str(directive).is_err() || !target.chars().all(is_of_a_target) {
            return Err(LogError::Malformed(plain(directive)));
        }
        let is_word = target.len() == directive.len();
        if is_word && LevelFilter::from_str(directive).is_err() && !directive.starts_with("pillarbox") {
            return Err(LogError::NoLevel(plain(directive)));
        }
    }
    let whole = directives.join(",");
    EnvFilter::builder().parse(&whole).map_err(|_| LogError::Malformed(plain(&whole)))
}

/// True for the characters of targets. Others separate directives in other programs, and would be taken for a part of a name here.
fn is_of_a_target(character: char) -> bool {
    character.is_alphanumeric() || "_-:./".contains(character)
}

fn install<L: Layer<Registry> + Send + Sync>(chosen: EnvFilter, json: bool, traces: Option<L>) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed()
    };
    let harmless = filter_fn(|metadata| may_log(metadata.target(), *metadata.level()));
    let harmless = harmless.with_max_level_hint(LevelFilter::TRACE);
    tracing_subscriber::registry().with(traces).with(lines.with_filter(chosen.and(harmless))).init();
}

/// Keeps the content of events and credentials out of the log, whatever `RUST_LOG` asks for.
///
/// Pillarbox itself logs none. Client libraries log their traffic from `debug` on, or may begin to in their next
/// release. The filter therefore limits whole libraries and not single lines.
fn may_log(target: &str, level: Level) -> bool {
    let library = target.split("::").next().unwrap_or_default();
    let is_ours = library == "pillarbox" || library.starts_with("pillarbox_");
    is_ours || level <= Level::INFO && !SILENT.contains(&library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_log_no_more_than_is_known_to_be_harmless() {
        for (target, level, logged) in [
            ("pillarbox", Level::TRACE, true),
            ("pillarbox_engine::settle", Level::TRACE, true),
            ("pillarboxes", Level::DEBUG, false),
            ("hyper_util::client", Level::INFO, true),
            ("hyper_util::client", Level::DEBUG, false),
            ("aws_smithy_runtime::client", Level::TRACE, false),
            ("lapin", Level::ERROR, false),
            ("lapin::channel", Level::WARN, false),
            ("async_nats::connector", Level::WARN, false),
            ("deadpool.postgres", Level::WARN, false),
            ("", Level::DEBUG, false),
        ] {
            assert_eq!(may_log(target, level), logged, "{target} {level}");
        }
    }

    /// The levels with `warn` as the default.
    fn levels(value: &str) -> Result<String, LogError> {
        chosen(Some(value.into()), "warn").map(|filter| filter.to_string())
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(chosen(None, "warn").map(|filter| filter.to_string()), Ok("warn".to_owned()));
        for empty in ["", " ", ",", " , "] {
            assert_eq!(levels(empty), Ok("warn".to_owned()), "{empty:?}");
        }
    }

    #[test]
    fn levels_and_targets_with_levels_are_taken() {
        for value in ["info", "off", "pillarbox_engine=debug", "pillarbox_engine=debug,info", "pillarbox_engine::run"] {
            let read = value.parse::<EnvFilter>().map(|filter| filter.to_string());
            assert_eq!(levels(value).ok(), read.ok(), "{value}");
        }
        for value in ["INFO", "3", "my_service=debug", "sqlx=warn,", "[handle]=debug", "[handle{attempt=2}]"] {
            assert!(levels(value).is_ok(), "{value}: {:?}", levels(value));
        }
        assert_eq!(levels(" info , sqlx=off "), levels("info,sqlx=off"));
    }

    #[test]
    fn mistyped_levels_are_refused_with_the_variable_the_problem_and_the_remedy() {
        for (value, error) in [
            ("inof", LogError::NoLevel("inof".to_owned())),
            ("warning", LogError::NoLevel("warning".to_owned())),
            ("sqlx=warn,inof", LogError::NoLevel("inof".to_owned())),
            ("pillarbox=inof", LogError::Malformed("pillarbox=inof".to_owned())),
            ("info;sqlx=warn", LogError::Malformed("info;sqlx=warn".to_owned())),
            ("info sqlx=warn", LogError::Malformed("info sqlx=warn".to_owned())),
            ("=info", LogError::Malformed("=info".to_owned())),
            ("a\u{1b}[2J", LogError::Malformed("a\\u{1b}[2J".to_owned())),
        ] {
            assert_eq!(levels(value), Err(error), "{value}");
        }
        let refused = LogError::NoLevel("inof".to_owned()).to_string();
        for part in ["variable RUST_LOG", "`inof`", "no level", "`info`", "TARGET=LEVEL", "`inof=trace`"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_refused() {
        use std::os::unix::ffi::OsStringExt as _;

        let value = OsString::from_vec(b"inf\xff".to_vec());
        assert_eq!(chosen(Some(value), "warn").map(|filter| filter.to_string()), Err(LogError::NotText));
    }
}
