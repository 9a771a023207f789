use std::time::Duration;

use tokio::time::Instant;

/// Signals this close together are one: `timeout` and supervisors signal a process, and then its group with the process in
/// it.
const ONE: Duration = Duration::from_millis(500);

/// What an operator, or the system, sends a process that is to stop: SIGINT (ctrl-c) and SIGTERM.
#[derive(Debug)]
pub(crate) struct Signals {
    source: Source,
    /// When the last one came that counted.
    last: Option<Instant>,
}

impl Signals {
    /// From now on signals no longer end the process by themselves.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { source: Source::listen()?, last: None })
    }

    /// Waits for the next one that is not the echo of the one before.
    pub(crate) async fn next(&mut self) {
        loop {
            self.source.next().await;
            let now = Instant::now();
            if is_another(self.last, now) {
                self.last = Some(now);
                return;
            }
        }
    }
}

/// Whether a signal that comes now is another one than the last that counted.
fn is_another(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= ONE)
}

#[derive(Debug)]
struct Source {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Source {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Source {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_half_a_second_later_is_another_signal() {
        let first = Instant::now();
        assert!(is_another(None, first));
        for (after, another) in [(0, false), (499, false), (500, true), (60_000, true)] {
            assert_eq!(is_another(Some(first), first + Duration::from_millis(after)), another, "{after} ms");
        }
    }
}
