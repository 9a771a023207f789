use pillarbox_core::publisher::PublishError;
use tokio::time::{Instant, timeout_at};

use crate::route::Route;
use crate::{RabbitMqPublisher, error};

impl RabbitMqPublisher {
    /// Looks for the exchange of each target, or the queue.
    pub(crate) async fn check_targets(&self, targets: &[String]) -> Result<(), PublishError> {
        let deadline = Instant::now() + self.options.timeout;
        let linked = timeout_at(deadline, self.connected()).await.map_err(|_| self.late("connecting"))??;
        for target in targets {
            let route = Route::parse(target, None).map_err(|error| PublishError::misconfigured(error.to_string()))?;
            match timeout_at(deadline, linked.connection.has(route)).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Err(error::missing(target, route)),
                Ok(Err(error)) => {
                    self.link.lost(&linked);
                    return Err(error::explain(&error, &self.info.address));
                }
                Err(_) => {
                    self.link.lost(&linked);
                    return Err(self.late("looking for targets"));
                }
            }
        }
        // Without targets nothing was asked; with a channel the broker has answered.
        if targets.is_empty() {
            let channel = timeout_at(deadline, linked.connection.channel()).await;
            match channel
                .map_err(|_| self.late("opening a channel"))
                .and_then(|channel| channel.map_err(|error| error::explain(&error, &self.info.address)))
            {
                Ok(channel) => linked.connection.give_back(channel),
                Err(error) => {
                    self.link.lost(&linked);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The error when the time is up.
    pub(crate) fn late(&self, doing: &str) -> PublishError {
        PublishError::unavailable(format!("{} did not answer in time ({doing})", self.info.address))
    }
}
