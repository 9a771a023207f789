use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pillarbox_programtest::send;

/// A process of the service, which is killed when it is dropped: a test that fails leaves none behind.
pub(crate) struct Process(Child);

impl Process {
    /// Starts one that books payments in the transaction that `commit` names.
    pub(crate) fn start(url: &str, mode: &str, commit: &str) -> Self {
        Self(worker(url, mode, commit).spawn().expect("the worker starts"))
    }

    /// Starts one that is held before each commit.
    pub(crate) fn start_held(url: &str, mode: &str) -> (Self, Hold) {
        let mut command = worker(url, mode, "held");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the worker starts");
        let hold = Hold { input: child.stdin.take().expect("piped"), output: child.stdout.take().expect("piped") };
        (Self(child), hold)
    }

    /// Stops it where it is: it neither ends nor notices.
    pub(crate) fn stop(&self) {
        send("-STOP", &self.0);
    }

    /// Lets it go on, as if no time had passed.
    pub(crate) fn resume(&self) {
        send("-CONT", &self.0);
    }

    /// True unless it has ended by itself.
    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("its state is known").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn worker(url: &str, mode: &str, commit: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox-killtest-worker"));
    command.args([url, mode, commit]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The means to hold a process before its commits. Dropping it lets all of them pass.
pub(crate) struct Hold {
    input: ChildStdin,
    output: ChildStdout,
}

impl Hold {
    /// Waits until an event is completed, and its transaction waits for its commit.
    pub(crate) async fn completed(self) -> Held {
        let Self { input, output } = self;
        let read = tokio::task::spawn_blocking(move || {
            let (mut output, mut line) = (BufReader::new(output), String::new());
            output.read_line(&mut line).map(|_| (output, line))
        });
        let (output, line) = read.await.expect("no panic").expect("its output can be read");
        assert_eq!(line, "completed\n", "the worker says when it has completed an event");
        Held { _input: input, _output: output }
    }
}

/// A process with a transaction that waits for its commit. Dropping it lets that pass, and all later ones.
pub(crate) struct Held {
    _input: ChildStdin,
    _output: BufReader<ChildStdout>,
}
