use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::WakeUps;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;

/// The shortest time between two notifications: however many events are committed here, the others are woken for all of them.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(5);
/// The delays after which to notify the others of a write whose commit nobody will report.
const GUESSED_COMMIT_DELAYS: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(80)];

/// Wakes the nodes that deliver what this process writes and does not deliver itself.
///
/// It never notifies within a user's transaction: in PostgreSQL that would make all committers queue for one lock.
#[derive(Debug)]
pub(crate) struct Notifier {
    enabled: bool,
    plan: Mutex<Plan>,
    /// Notified when the plan has changed.
    replanned: Notify,
}

#[derive(Debug, Default)]
struct Plan {
    /// The time of the next notification.
    at: Option<Instant>,
    /// The last write whose commit has to be guessed.
    wrote: Option<Instant>,
}

impl Notifier {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, plan: Mutex::default(), replanned: Notify::new() }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Events were committed that somebody else has to deliver.
    pub(crate) fn committed(&self) {
        if self.enabled {
            self.notify_at(&mut self.plan.lock(), Instant::now());
        }
    }

    /// Events were written that somebody else has to deliver; when they are committed is not known.
    pub(crate) fn wrote(&self) {
        if self.enabled {
            let now = Instant::now();
            let mut plan = self.plan.lock();
            plan.wrote = Some(now);
            self.notify_at(&mut plan, now + GUESSED_COMMIT_DELAYS[0]);
        }
    }

    fn notify_at(&self, plan: &mut Plan, at: Instant) {
        if plan.at.is_none_or(|planned| at < planned) {
            plan.at = Some(at);
            self.replanned.notify_one();
        }
    }

    /// Notifies the others for as long as it is polled.
    pub(crate) async fn run(&self, wake_ups: &dyn WakeUps, random: &dyn Random) {
        let mut backoff = Backoff::default();
        loop {
            self.wait().await;
            match wake_ups.notify().await {
                Ok(()) => {
                    if backoff.end() {
                        tracing::info!("other nodes are woken again");
                    }
                    tokio::time::sleep(MIN_NOTIFY_INTERVAL).await;
                }
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "other nodes cannot be woken; they find the events at their next poll");
                    }
                    tokio::time::sleep(backoff.next(random)).await;
                }
            }
        }
    }

    /// Waits for the next planned notification and plans the one after it.
    async fn wait(&self) {
        loop {
            let changed = self.replanned.notified();
            let at = {
                let mut plan = self.plan.lock();
                let now = Instant::now();
                if plan.at.is_some_and(|at| at <= now) {
                    let guesses = plan.wrote.map(|wrote| GUESSED_COMMIT_DELAYS.map(|after| wrote + after));
                    plan.at = guesses.and_then(|guesses| guesses.into_iter().find(|guess| *guess > now));
                    return;
                }
                plan.at
            };
            match at {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of all notifications within `span`, in milliseconds.
    async fn notifications(notifier: &Notifier, span: Duration) -> Vec<u128> {
        let start = Instant::now();
        let mut times = Vec::new();
        let notifying = async {
            loop {
                notifier.wait().await;
                times.push(start.elapsed().as_millis());
                tokio::time::sleep(MIN_NOTIFY_INTERVAL).await;
            }
        };
        let _elapsed: Result<(), _> = tokio::time::timeout(span, notifying).await;
        times
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_notifies_at_once_and_a_thousand_notify_once() {
        let notifier = Notifier::new(true);
        for _ in 0..1000 {
            notifier.committed();
        }
        assert_eq!(notifications(&notifier, Duration::from_secs(1)).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_notifies_when_it_may_have_been_committed() {
        let notifier = Notifier::new(true);
        notifier.wrote();
        assert_eq!(notifications(&notifier, Duration::from_secs(1)).await, [5, 20, 80]);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_without_end_do_not_put_off_the_notification() {
        let notifier = Notifier::new(true);
        let writing = async {
            loop {
                notifier.wrote();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let times = tokio::select! {
            times = notifications(&notifier, Duration::from_secs(1)) => times,
            () = writing => unreachable!("it never ends"),
        };
        assert!(times.len() > 50 && times.windows(2).all(|pair| pair[1] - pair[0] <= 21), "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_silent_unless_enabled() {
        let notifier = Notifier::new(false);
        notifier.wrote();
        notifier.committed();
        assert!(notifications(&notifier, Duration::from_secs(1)).await.is_empty());
    }
}
