//! The log on stderr: its levels and its sources.

use tracing::Level;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Client libraries whose lines hold messages or credentials, at `warn` as well: a message that RabbitMQ returns is
/// logged with its body. The publishers report their errors. The pool of connections logs each lost connection with
/// neither its owner nor the reason; the store's errors have both.
const SILENT: [&str; 3] = ["async_nats", "lapin", "deadpool.postgres"];

/// Starts the log: from `level` on unless `RUST_LOG` says otherwise, as lines of JSON or as text. It goes to stderr, so
/// that stdout can be piped, with colours only on a terminal.
pub fn start(level: &str, json: bool) {
    install(level, json, None::<tracing_subscriber::layer::Identity>);
}

/// Starts the log, and sends traces where there are any.
#[cfg(feature = "otlp")]
pub fn start_with(level: &str, json: bool, traces: Option<&crate::traces::Traces>) {
    install(level, json, traces.map(crate::traces::Traces::layer));
}

fn install<L: Layer<Registry> + Send + Sync>(level: &str, json: bool, traces: Option<L>) {
    let chosen = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
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
}
