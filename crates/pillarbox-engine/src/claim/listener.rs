use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::WakeUps;

use crate::backoff::Backoff;
use crate::poll_schedule::PollSchedule;

/// Lets other processes wake the cold path of this one, for as long as it is polled. Losing it costs latency only.
pub(crate) async fn listen(wake_ups: &dyn WakeUps, poll_schedule: &PollSchedule, random: &dyn Random) {
    let mut backoff = Backoff::default();
    loop {
        let lost: Result<(), StoreError> = async {
            let mut listener = wake_ups.listen().await?;
            if backoff.end() {
                tracing::info!("other nodes can wake this one again");
            }
            // A notification may have been missed while nobody was listening.
            poll_schedule.wake_for_any();
            loop {
                listener.notified().await?;
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
