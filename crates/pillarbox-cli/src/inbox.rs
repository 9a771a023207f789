//! The messages that consumers have received.

use std::process::ExitCode;
use std::time::Duration;

use pillarbox::inbox;
use pillarbox::maintain::{AuditedAction, InboxConsumer};
use serde::Serialize;

use crate::args::{Actor, Inbox, Target};
use crate::failure::Failure;
use crate::{audit, duration, store};
use pillarbox_program::progress;
use pillarbox_program::report::{self, counted, grouped, plain, rounded};

pub(crate) async fn run(inbox: Inbox) -> Result<ExitCode, Failure> {
    match inbox {
        Inbox::Status { target, limit, after } => status(&target, limit.into(), after.as_deref()).await?,
        Inbox::Purge { target, older_than, consumer, batch, actor } => {
            purge(&target, older_than, consumer.as_deref(), batch.into(), &actor).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists a page of consumers.
async fn status(target: &Target, limit: usize, after: Option<&str>) -> Result<(), Failure> {
    let page = store::on(target, async |store| {
        // One more than is shown tells whether there is another page.
        let mut found = store.inbox_consumers(after, limit + 1).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let mut consumers = Vec::with_capacity(found.len());
        for InboxConsumer { name, oldest } in found {
            let messages = store.count_inbox(&name).await?;
            let oldest_seconds = rounded(oldest.as_secs_f64(), 3);
            consumers.push(Consumer { consumer: name, messages, oldest_seconds, oldest });
        }
        Ok(Page { next: consumers.last().filter(|_| more).map(|last| last.consumer.clone()), consumers })
    });
    let page = page.await?;
    Ok(report::print_either(target.json, &page, || page.text(after.is_some()))?)
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Page {
    consumers: Vec<Consumer>,
    /// The `--after` of the next page; null if this is the last one.
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Consumer {
    consumer: String,
    /// Counted up to [`InboxConsumer::COUNTED_UP_TO`].
    messages: u64,
    oldest_seconds: f64,
    #[serde(skip)]
    oldest: Duration,
}

impl Page {
    fn text(&self, behind: bool) -> String {
        if self.consumers.is_empty() {
            let behind = if behind { " behind --after" } else { "" };
            return format!("The inbox remembers no messages{behind}.");
        }
        let rows = self.consumers.iter().map(|Consumer { consumer, messages, oldest, .. }| {
            let more = if *messages < InboxConsumer::COUNTED_UP_TO { "" } else { "+" };
            [plain(consumer), format!("{}{more}", grouped(*messages)), duration::human(*oldest)]
        });
        let table = report::listing(["CONSUMER", "MESSAGES", "OLDEST"], rows).trim_fmt();
        let shown = counted(self.consumers.len() as u64, "consumer");
        let more = self.next.as_deref().map(|name| format!("; more with --after {}", plain(name))).unwrap_or_default();
        format!("{table}\n\n{shown}{more}")
    }
}

/// The line of JSON. Its key is a contract.
#[derive(Debug, Serialize)]
struct Purged {
    removed: u64,
}

async fn purge(
    target: &Target,
    older_than: Duration,
    consumer: Option<&str>,
    batch: usize,
    actor: &Actor,
) -> Result<(), Failure> {
    let subject =
        audit::subject([("older than", Some(duration::human(older_than))), ("consumer", consumer.map(str::to_owned))]);
    let action = AuditedAction::new(&actor.name(), "purge inbox", &subject);
    let counter = progress::counter("deleted");
    let purged = store::on(target, async |store| {
        audit::recorded(
            store,
            &action,
            |removed| (Some(*removed), audit::DONE.into()),
            async || {
                let mut removed = 0;
                let progress = |so_far| {
                    removed = so_far;
                    counter.set_position(so_far);
                };
                let purged = inbox::purge(store, consumer, older_than, batch, progress).await;
                purged.map_err(|error| Failure::from(error).after(removed, "message", "deleted"))
            },
        )
        .await
    })
    .await;
    counter.finish_and_clear();
    let purged = Purged { removed: purged? };
    let verb = if purged.removed == 1 { "was" } else { "were" };
    let text = || format!("{} {verb} deleted", counted(purged.removed, "message"));
    Ok(report::print_either(target.json, &purged, text)?)
}
