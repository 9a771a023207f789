//! Each bench runs in its own process, by the command line that the report names: its memory and CPU time are its own,
//! and a bench that dies becomes a row of the report rather than the end of it.

use std::process::{Output, Stdio};

use pillarbox_program::failure::sentence;
use serde_json::Value;
use tokio::process::Command;

use super::plan::Entry;
use super::run::{End, Run};
use crate::failure::Failure;

/// Runs a bench and waits for its end.
pub(crate) async fn run(entry: &Entry, store: &str) -> Run {
    let end = match start(entry, store).await {
        Ok(output) => end(&output),
        Err(failure) => End::Failure(sentence(&failure)),
    };
    Run { name: entry.name, command: format!("pillarbox bench {}", entry.arguments), end }
}

async fn start(entry: &Entry, store: &str) -> Result<Output, Failure> {
    const DOING: &str = "start a bench";
    let program = std::env::current_exe().map_err(Failure::of_system(DOING))?;
    let output = Command::new(program)
        .args(entry.arguments.split_whitespace())
        .arg("--json")
        .args(entry.has_samples().then_some("--samples"))
        // As a variable, because everybody on the machine can read command lines.
        .env("PILLARBOX_STORE", store)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    output.await.map_err(Failure::of_system(DOING))
}

/// The figures that a bench has printed, or the reason why there are none.
fn end(output: &Output) -> End {
    if let Ok(figures @ Value::Object(_)) = serde_json::from_slice(&output.stdout) {
        return End::Figures(figures);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let reason = lines().find_map(|line| line.strip_prefix("error: ")).or_else(|| lines().next_back());
    End::Failure(reason.map_or_else(|| format!("it ended without a word: {}", output.status), ToOwned::to_owned))
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    fn output(stdout: &str, stderr: &str) -> Output {
        Output { status: ExitStatus::default(), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn figures_count_whatever_else_was_said() {
        let end = end(&output("{\"lost\":1}\n", "warning: slow\n"));
        assert!(matches!(end, End::Figures(figures) if figures["lost"] == 1));
    }

    #[test]
    fn without_figures_the_error_or_the_last_word_is_the_reason() {
        let reason = |stdout, stderr| match end(&output(stdout, stderr)) {
            End::Failure(reason) => reason,
            End::Figures(figures) => panic!("{figures}"),
        };
        assert_eq!(reason("", "warning: slow\nerror: no server\n\nTry '--help'\n"), "no server");
        assert_eq!(reason("17", "thread panicked"), "thread panicked");
        assert!(reason("", "").contains("exit status: 0"));
    }
}
