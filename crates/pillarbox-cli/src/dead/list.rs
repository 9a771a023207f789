use std::process::ExitCode;

use pillarbox::maintain::{DeadEvent, DeadEvents};
use pillarbox_program::report;
use serde::Serialize;

use crate::args::{Matching, Target};
use crate::failure::Failure;
use crate::listing::{CountedPage, Fields, Listed, fields, time};
use crate::store;

/// Lists a page of the events that were given up.
pub(crate) async fn run(
    target: &Target,
    matching: &Matching,
    limit: usize,
    after: Option<i64>,
    wide: bool,
) -> Result<ExitCode, Failure> {
    let read = store::on(target, async |store| {
        let filter = matching.filter(store).await?;
        let dead = DeadEvents::of(store);
        // One more than is shown tells whether there is another page.
        Ok((dead.list(&filter, after, limit + 1).await?, dead.count(&filter).await?))
    });
    let (events, matching) = read.await?;
    let page = CountedPage::new(events, matching, limit, wide);
    report::print_either(target.json, &page.json(), || page.text("No event that was given up matches."))?;
    Ok(ExitCode::SUCCESS)
}

/// The field of a DEAD event alone.
#[derive(Debug, Serialize)]
pub(crate) struct Own {
    dead_at: Option<String>,
}

impl Listed for DeadEvent {
    type Own<'a> = Own;

    fn fields(&self) -> Fields<'_> {
        fields!(self)
    }

    fn own(&self) -> Own {
        Own { dead_at: self.dead_at.map(|time| time.to_string()) }
    }

    fn columns(&self) -> Vec<(&'static str, Option<String>)> {
        vec![("ATTEMPTS", Some(self.attempts.to_string())), ("SINCE", time(self.dead_at))]
    }
}
