use pillarbox_core::examine::{Check, Checked, Severity};
use pillarbox_core::publisher::{PublishError, Publisher};
use tokio::time::timeout;

use crate::Doctor;

/// The checks that all brokers have in common.
pub const ALL: &[&Check] = &[&TARGETS];

static TARGETS: Check = Check {
    code: "broker-refuses",
    severity: Severity::Critical,
    healthy: "the broker answers and has what routes send to, as far as it can tell",
    cause: "The broker does not answer, or refuses the credentials or what a route sends to: its events wait in the table.",
    remedy: "Mend what the evidence names. The route goes on by itself.",
};

/// Examines a broker: first whether it takes what is to be sent, then how safely it keeps it.
pub(crate) async fn examine(
    doctor: &Doctor,
    publisher: &dyn Publisher,
    targets: &[String],
    beginnings: &[String],
    results: &mut Vec<Checked>,
) {
    // Connecting takes several round trips.
    let limit = doctor.statement_limit * 2;
    let asked = timeout(limit, async {
        publisher.check(targets).await?;
        for beginning in beginnings {
            publisher.check_prefix(beginning).await?;
        }
        Ok::<(), PublishError>(())
    });
    let refused = match asked.await {
        Ok(answer) => answer.err().map(|error| error.to_string()),
        Err(_elapsed) => Some(format!("no answer within {limit:?}")),
    };
    let is_refused = refused.is_some();
    results.push(TARGETS.judge(refused));
    if is_refused {
        return;
    }
    results.extend(publisher.examine(targets).await);
}
