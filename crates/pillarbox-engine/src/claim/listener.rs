use std::pin::pin;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::WakeUps;
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::poll_schedule::PollSchedule;

/// The time after which a connection that has brought nothing yet is taken for a lasting one. A proxy may accept it and close it at once.
const LASTING: Duration = Duration::from_secs(5);

/// Lets other processes wake the cold path of this one, for as long as it is polled. Losing it costs latency only.
pub(crate) async fn listen(wake_ups: &dyn WakeUps, poll_schedule: &PollSchedule, random: &dyn Random) {
    let mut backoff = Backoff::default();
    loop {
        let lost: Result<(), StoreError> = async {
            let mut listener = wake_ups.listen().await?;
            // A notification may have been missed while nobody was listening.
            poll_schedule.wake_for_any();
            let lasting_from = Instant::now() + LASTING;
            loop {
                let mut notified = pin!(listener.notified());
                let early = tokio::select! {
                    notified = &mut notified => Some(notified),
                    () = sleep_until(lasting_from), if !backoff.is_first() => None,
                };
                if early.as_ref().is_none_or(Result::is_ok) && backoff.end() {
                    tracing::info!("other nodes can wake this one again");
                }
                match early {
                    Some(notified) => notified?,
                    None => notified.await?,
                }
                poll_schedule.wake_for_any();
            }
        }
        .await;
        if let Err(error) = lost
            && backoff.is_first()
        {
            tracing::warn!(%error, "wake-ups cannot be received; this node polls at its interval");
        }
        tokio::time::sleep(backoff.next(random)).await;
    }
}
