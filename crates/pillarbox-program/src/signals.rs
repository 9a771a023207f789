//! The signals that stop a process, or ask it to read its file again.

use std::time::Duration;

use tokio::time::Instant;

/// The exit code of a process that a signal ended before its work was done.
pub const INTERRUPTED: u8 = 130;

/// Signals this close together are one: `timeout` and supervisors signal a process, and then its group with the process in
/// it.
const ONE: Duration = Duration::from_millis(500);

/// The signals that stop a process: SIGINT (ctrl-c) and SIGTERM, and SIGHUP where it has no other
/// meaning.
#[derive(Debug)]
pub struct Signals {
    source: Source,
    /// The time of the last one that counted.
    last: Option<Instant>,
}

impl Signals {
    /// From now on signals no longer end the process by themselves.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { source: Source::listen(false)?, last: None })
    }

    /// The same for a process that has no file to read again: SIGHUP, the sign that its terminal is gone, stops it in
    /// order.
    pub fn listen_with_hangup() -> std::io::Result<Self> {
        Ok(Self { source: Source::listen(true)?, last: None })
    }

    /// Waits for the next one that is not the echo of the one before.
    pub async fn next(&mut self) {
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

/// True if a signal at `now` is another one than the last that counted.
fn is_another(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= ONE)
}

#[derive(Debug)]
struct Source {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

/// The signal that asks a daemon to read its file again: SIGHUP. On platforms without that signal, it never comes.
#[derive(Debug)]
pub struct Reloads {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reloads {
    /// From now on the signal does not end the process.
    #[cfg(unix)]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { hangup: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())? })
    }

    #[cfg(not(unix))]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.hangup.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
impl Source {
    fn listen(hangup: bool) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = if hangup { Some(signal(SignalKind::hangup())?) } else { None };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

#[cfg(not(unix))]
impl Source {
    fn listen(_hangup: bool) -> std::io::Result<Self> {
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
