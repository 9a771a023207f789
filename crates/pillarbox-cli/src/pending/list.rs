use std::process::ExitCode;

use pillarbox::maintain::{PendingEvent, PendingEvents, PendingFilter};
use pillarbox_program::report::{self, plain};
use serde::Serialize;

use crate::args::{PendingMatching, Target};
use crate::failure::Failure;
use crate::listing::{CountedPage, Fields, Listed, fields, time};
use crate::store;

/// Lists a page of the events that still have to be delivered.
pub(crate) async fn run(
    target: &Target,
    matching: PendingMatching,
    limit: usize,
    after: Option<i64>,
    wide: bool,
) -> Result<ExitCode, Failure> {
    let filter = PendingFilter::from(matching);
    let read = store::on(target, async |store| {
        let pending = PendingEvents::of(store);
        // One more than is shown tells whether there is another page.
        Ok((pending.list(&filter, after, limit + 1).await?, pending.count(&filter).await?))
    });
    let (events, matching) = read.await?;
    let page = CountedPage::new(events, matching, limit, wide);
    report::print_either(target.json, &page.json(), || page.text("No pending event matches."))?;
    Ok(ExitCode::SUCCESS)
}

/// The fields of a pending event alone.
#[derive(Debug, Serialize)]
pub(crate) struct Own<'a> {
    state: &'static str,
    due_at: Option<String>,
    held_by: Option<&'a str>,
}

impl Listed for PendingEvent {
    type Own<'a> = Own<'a>;

    fn fields(&self) -> Fields<'_> {
        fields!(self)
    }

    fn own(&self) -> Own<'_> {
        let due_at = self.due_at.map(|time| time.to_string());
        Own { state: self.state.name(), due_at, held_by: self.held_by.as_deref() }
    }

    fn columns(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("STATE", Some(self.state.name().to_owned())),
            ("ATTEMPTS", Some(self.attempts.to_string())),
            ("DUE", time(self.due_at)),
            ("HELD BY", self.held_by.as_deref().map(plain)),
        ]
    }
}
