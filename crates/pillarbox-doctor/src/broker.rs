use pillarbox_core::examine::{Check, Checked, Severity};
use pillarbox_core::publisher::Publisher;
use tokio::time::timeout;

use crate::Doctor;

/// The checks that all brokers have in common.
pub const ALL: &[&Check] = &[&TARGETS];

static TARGETS: Check = Check {
    code: "broker-refuses",
    severity: Severity::Critical,
    healthy: "the broker answers and has all constant targets",
    cause: "The broker does not answer, or refuses the credentials or a target of a route: that route is paused, and its events wait in the table.",
    remedy: "Mend what the evidence names. The route goes on by itself.",
};

/// Examines a broker: first whether it takes what is to be sent, then how safely it keeps it.
pub(crate) async fn examine(
    doctor: &Doctor,
    publisher: &dyn Publisher,
    targets: &[String],
    results: &mut Vec<Checked>,
) {
    // Connecting takes several round trips.
    let limit = doctor.statement_limit * 2;
    match timeout(limit, publisher.check(targets)).await {
        Ok(Ok(())) => results.push(TARGETS.healthy()),
        Ok(Err(error)) => {
            results.push(TARGETS.found(error.to_string()));
            return;
        }
        Err(_elapsed) => {
            results.push(TARGETS.found(format!("no answer within {limit:?}")));
            return;
        }
    }
    results.extend(publisher.examine(targets).await);
}
