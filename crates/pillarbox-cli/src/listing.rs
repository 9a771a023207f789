//! Lists of events: the columns that all of them have, and those of each.

use pillarbox::event::Timestamp;
use pillarbox_program::report::{self, grouped, or_dash, plain};
use serde::Serialize;

/// The fields of an event that every list shows.
#[derive(Debug, Serialize)]
pub(crate) struct Fields<'a> {
    pub(crate) seq: i64,
    pub(crate) event_id: &'a str,
    pub(crate) event_type: &'a str,
    pub(crate) aggregate_type: &'a str,
    pub(crate) aggregate_id: Option<&'a str>,
    pub(crate) tenant_id: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) handler: Option<&'a str>,
    pub(crate) attempts: i32,
    pub(crate) last_error: Option<&'a str>,
    pub(crate) created_at: String,
}

/// The fields of an event, from the type of a list that has them under these names.
macro_rules! fields {
    ($event:expr) => {
        $crate::listing::Fields {
            seq: $event.seq,
            event_id: &$event.event_id,
            event_type: &$event.event_type,
            aggregate_type: &$event.aggregate_type,
            aggregate_id: $event.aggregate_id.as_deref(),
            tenant_id: $event.tenant_id.as_deref(),
            key: $event.key.as_deref(),
            handler: $event.handler.as_deref(),
            attempts: $event.attempts,
            last_error: $event.last_error.as_deref(),
            created_at: $event.created_at.to_string(),
        }
    };
}

pub(crate) use fields;

/// An event of a list.
pub(crate) trait Listed {
    /// The fields that only this list has, for its JSON.
    type Own<'a>: Serialize
    where
        Self: 'a;
    fn fields(&self) -> Fields<'_>;
    fn own(&self) -> Self::Own<'_>;
    /// The columns that only this list has, each with a heading; one that no event has a text for is left out.
    fn columns(&self) -> Vec<(&'static str, Option<String>)>;
}

/// An event in JSON. The keys are a contract.
#[derive(Debug, Serialize)]
pub(crate) struct Json<'a, O> {
    #[serde(flatten)]
    fields: Fields<'a>,
    #[serde(flatten)]
    own: O,
}

/// The events in JSON.
pub(crate) fn json<E: Listed>(events: &[E]) -> Vec<Json<'_, E::Own<'_>>> {
    events.iter().map(|event| Json { fields: event.fields(), own: event.own() }).collect()
}

/// The events as a table, with errors whole if it is `wide`. Keys, handlers and others are shown only if there are any.
pub(crate) fn table<E: Listed>(events: &[E], wide: bool) -> String {
    let rows: Vec<Vec<(&str, Option<String>)>> = events.iter().map(|event| cells(event, wide)).collect();
    let shown = |column: usize| rows.iter().any(|cells| cells.get(column).is_some_and(|(_, cell)| cell.is_some()));
    let columns = rows.first().map_or(0, Vec::len);
    let shown: Vec<usize> = (0..columns).filter(|column| shown(*column)).collect();
    let heading = shown.iter().filter_map(|column| Some(rows.first()?.get(*column)?.0)).collect::<Vec<_>>();
    let row = |cells: &Vec<(&str, Option<String>)>| {
        let cell = |column: &usize| cells.get(*column).and_then(|(_, cell)| cell.clone());
        shown.iter().map(|column| cell(column).unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>()
    };
    report::listing(heading, rows.iter().map(row)).trim_fmt()
}

fn cells<E: Listed>(event: &E, wide: bool) -> Vec<(&'static str, Option<String>)> {
    let fields = event.fields();
    let kind = plain(fields.aggregate_type);
    let aggregate = fields.aggregate_id.map_or_else(|| kind.clone(), |id| format!("{kind}/{}", plain(id)));
    let mut cells = vec![
        ("SEQ", Some(fields.seq.to_string())),
        ("EVENT ID", Some(plain(fields.event_id))),
        ("TYPE", Some(plain(fields.event_type))),
        ("AGGREGATE", Some(aggregate)),
        ("KEY", fields.key.map(plain)),
        ("HANDLER", fields.handler.map(plain)),
        ("TENANT", Some(or_dash(fields.tenant_id))),
    ];
    cells.extend(event.columns());
    cells.push(("ERROR", Some(report::error(fields.last_error, wide))));
    cells
}

/// A cell that is shown for every event.
pub(crate) fn time(time: Option<Timestamp>) -> Option<String> {
    Some(time.map_or_else(|| "-".to_owned(), report::time))
}

/// A page of events of which the number of all is known.
#[derive(Debug)]
pub(crate) struct CountedPage<E> {
    pub(crate) events: Vec<E>,
    /// The number of events on all pages.
    pub(crate) matching: u64,
    /// The `--after` of the next page; `None` if this is the last one.
    pub(crate) next: Option<i64>,
    /// True if errors are shown whole.
    pub(crate) wide: bool,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
struct CountedJson<'a, O> {
    events: Vec<Json<'a, O>>,
    matching: u64,
    next: Option<i64>,
}

impl<E: Listed> CountedPage<E> {
    /// The page of up to `limit` events, from one more than that, if there are so many.
    pub(crate) fn new(mut events: Vec<E>, matching: u64, limit: usize, wide: bool) -> Self {
        let more = events.len() > limit;
        events.truncate(limit);
        let next = events.last().filter(|_| more).map(|last| last.fields().seq);
        Self { events, matching, next, wide }
    }

    pub(crate) fn json(&self) -> impl Serialize {
        CountedJson { events: json(&self.events), matching: self.matching, next: self.next }
    }

    /// The text, or `nothing` if no event matches.
    pub(crate) fn text(&self, nothing: &str) -> String {
        if self.events.is_empty() {
            return match self.matching {
                0 => nothing.to_owned(),
                1 => "The one event that matches is not behind --after.".to_owned(),
                all => format!("None of the {} events that match is behind --after.", grouped(all)),
            };
        }
        let shown = grouped(self.events.len() as u64);
        let more = self.next.map(|seq| format!("; more with --after {seq}")).unwrap_or_default();
        format!("{}\n\n{shown} of {}{more}", table(&self.events, self.wide), grouped(self.matching))
    }
}
