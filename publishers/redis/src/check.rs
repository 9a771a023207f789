use pillarbox_core::publisher::PublishError;
use redis::{Pipeline, Value};
use tokio::time::Instant;

use crate::{RedisPublisher, entry, error};

impl RedisPublisher {
    /// Asks about each target what it is, and tries an entry that cannot be added.
    pub(crate) async fn check_targets(&self, targets: &[String]) -> Result<(), PublishError> {
        let deadline = Instant::now() + self.options.timeout;
        let mut pipeline = Pipeline::with_capacity(1 + 2 * targets.len());
        pipeline.cmd("PING");
        for target in targets {
            pipeline.cmd("TYPE").arg(target);
            pipeline.add_command(entry::rehearse(target, &self.options));
        }
        let mut replies = self.ask(&pipeline, deadline).await?.into_iter();
        error::answer(replies.next(), &self.info.address)?;
        for target in targets {
            if target.is_empty() {
                return Err(PublishError::misconfigured("a target is empty; name a stream"));
            }
            let (kind, rehearsal) = (replies.next(), replies.next());
            error::rehearsal(rehearsal, target)?;
            // A user that may only append may not ask, and need not.
            if let Some(Value::SimpleString(kind)) = kind {
                error::kind(&kind, target, self.options.create_streams)?;
            }
        }
        Ok(())
    }
}
