//! Checks how safely a broker keeps confirmed messages.
//!
//! AMQP has no question for the kind of a queue. A broker compares the arguments of a declaration with those of a queue that is there, and names
//! the first that differs; so a queue is declared with arguments of which the last cannot be had by any: a queue that is missing is not created.

use std::sync::Arc;

use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use pillarbox_core::examine::Severity::{Critical, Warning};
use pillarbox_core::examine::{Check, Checked};
use tokio::time::{Instant, timeout_at};

use crate::RabbitMqPublisher;
use crate::route::Route;
use crate::session::{Session, soft};

/// All checks of this publisher.
pub const ALL: &[&Check] = &[&TRANSIENT, &CLASSIC];

static TRANSIENT: Check = Check {
    code: "rabbitmq-queue-transient",
    severity: Critical,
    healthy: "the queues survive a restart",
    cause: "A queue is not durable: a restart of the broker deletes it, with all messages that were confirmed and not consumed.",
    remedy: "Declare the queue anew as a durable one, best as a quorum queue.",
};
static CLASSIC: Check = Check {
    code: "rabbitmq-queue-classic",
    severity: Warning,
    healthy: "the queues are replicated",
    cause: "A queue is a classic one: it is on one node of the cluster alone. While that node is away nothing can be published to it, and its messages are lost with its disk.",
    remedy: "Declare the queue anew with `x-queue-type: quorum`, on a cluster of three nodes; on a single node accept it with `--ignore rabbitmq-queue-classic`.",
};

/// The kind of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Transient,
    Classic,
    Replicated,
}

impl RabbitMqPublisher {
    /// Asks for the kind of each queue that a target names; of an exchange the broker does not tell where it leads.
    pub(crate) async fn examine_queues(&self, targets: &[String]) -> Vec<Checked> {
        let deadline = Instant::now() + self.options.timeout;
        match timeout_at(deadline, self.connected()).await {
            Ok(Ok(linked)) => {
                let looking = judge(&linked.connection, targets);
                timeout_at(deadline, looking)
                    .await
                    .unwrap_or_else(|_| none(&self.late("looking at queues").to_string()))
            }
            Ok(Err(error)) => none(&error.to_string()),
            Err(_elapsed) => none(&self.late("connecting").to_string()),
        }
    }
}

fn none(reason: &str) -> Vec<Checked> {
    ALL.iter().map(|check| check.not_checked(reason)).collect()
}

async fn judge(session: &Arc<Session>, targets: &[String]) -> Vec<Checked> {
    let (mut kinds, mut unknown) = (Vec::new(), Vec::new());
    if targets.is_empty() {
        unknown.push("every target depends on the event, so that its queue is not known before".to_owned());
    }
    for target in targets {
        match Route::parse(target, None) {
            Ok(route) if route.is_a_queue() => match kind(session, route.key).await {
                Ok(kind) => kinds.push((route.key, kind)),
                Err(problem) => unknown.push(format!("queue {}: {problem}", route.key)),
            },
            Ok(route) => {
                unknown.push(format!("exchange {}: AMQP does not tell which queues it leads to", route.exchange));
            }
            Err(error) => unknown.push(format!("{target}: {error}")),
        }
    }
    let of = |check: &'static Check, wanted: Kind, words: &str| {
        let all: Vec<String> = kinds
            .iter()
            .filter(|(_, kind)| *kind == wanted)
            .map(|(queue, _)| format!("queue {queue} is {words}"))
            .collect();
        let reasons = || check.not_checked(unknown.join("; "));
        match (all.is_empty(), unknown.is_empty()) {
            (false, _) => vec![check.found(all.join("; "))],
            (true, true) => vec![check.healthy()],
            (true, false) => vec![reasons()],
        }
    };
    let mut results = of(&TRANSIENT, Kind::Transient, "not durable");
    results.extend(of(&CLASSIC, Kind::Classic, "a classic one"));
    results
}

/// The kind of a queue, by what the broker says of a declaration that fits none.
async fn kind(session: &Session, queue: &str) -> Result<Kind, String> {
    let channel = session.fresh_channel().await.map_err(|error| error.to_string())?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    // No queue has it, and none can be made with it.
    arguments.insert("x-quorum-initial-group-size".into(), AMQPValue::LongInt(-1));
    match channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments).await {
        Ok(_) => Err("the broker took a declaration that fits no queue".to_owned()),
        Err(error) => {
            if soft(&error).is_none() {
                return Err(error.to_string());
            }
            let said = error.to_string();
            let differs = |argument: &str| said.contains(&format!("inequivalent arg '{argument}'"));
            if differs("durable") {
                Ok(Kind::Transient)
            } else if differs("x-quorum-initial-group-size") || said.contains("current is 'stream'") {
                Ok(Kind::Replicated)
            } else if differs("x-queue-type") {
                Ok(Kind::Classic)
            } else {
                Err(said)
            }
        }
    }
}
