use pillarbox_core::publisher::PublishError;
use tokio::time::{Instant, timeout_at};

use crate::route::Route;
use crate::{RabbitMqPublisher, error};

impl RabbitMqPublisher {
    /// Looks for the exchange of each target, or the queue.
    pub(crate) async fn check_targets(&self, targets: &[String]) -> Result<(), PublishError> {
        let deadline = Instant::now() + self.options.timeout;
        let linked = timeout_at(deadline, self.connected()).await.map_err(|_| self.late("connecting"))??;
        let late = |doing: &str| {
            self.link.lost(&linked);
            self.late(doing)
        };
        for target in targets {
            let route = Route::parse(target, None).map_err(|error| PublishError::misconfigured(error.to_string()))?;
            let found = timeout_at(deadline, linked.connection.has(route)).await;
            let found = found.map_err(|_| late("looking for targets"))?;
            if !found.map_err(|error| self.lost(&linked, &error))? {
                return Err(error::missing(target, route));
            }
        }
        // Without targets nothing was asked; with a channel the broker has answered.
        if targets.is_empty() {
            let channel = timeout_at(deadline, linked.connection.channel()).await;
            let channel = channel.map_err(|_| late("opening a channel"))?;
            linked.connection.give_back(channel.map_err(|error| self.lost(&linked, &error))?);
        }
        Ok(())
    }

    /// The error when the time is up.
    pub(crate) fn late(&self, doing: &str) -> PublishError {
        PublishError::unavailable(format!("{} did not answer in time ({doing})", self.info.address))
    }
}
