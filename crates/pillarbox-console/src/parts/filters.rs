use std::collections::BTreeMap;

use maud::{Markup, html};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pillarbox_core::clock::Timestamp;
use pillarbox_core::row::Status;
use pillarbox_core::store::{DeadFilter, EventFilter, PendingFilter, PendingState, Store};
use pillarbox_engine::maintain::{InvalidMoment, Moment};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::problem::Problem;

/// The characters that are encoded in the query of an address.
const QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'\'').add(b'+').add(b'<').add(b'=').add(b'>');

/// A filter of the store's with the attributes that are filled in.
macro_rules! narrowed {
    ($fields:expr, $filter:expr) => {{
        let (fields, mut filter) = ($fields, $filter);
        if let Some(value) = text(&fields.event_type) {
            filter = filter.event_type(value);
        }
        if let Some(value) = text(&fields.aggregate) {
            filter = filter.aggregate_type(value);
        }
        if let Some(value) = text(&fields.tenant) {
            filter = filter.tenant(value);
        }
        if let Some(value) = text(&fields.handler) {
            filter = filter.handler(value);
        }
        if let Some(value) = text(&fields.key) {
            filter = filter.key(value);
        }
        filter
    }};
}

/// The word for pending events in any state.
pub(crate) const PENDING: &str = "pending";

/// A filter of events, as the query of an address holds it. An empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Filters {
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) aggregate: String,
    pub(crate) tenant: String,
    pub(crate) handler: String,
    pub(crate) key: String,
    pub(crate) state: String,
    pub(crate) error: String,
    pub(crate) since: String,
    pub(crate) before: String,
}

/// The names of an address or a form that nothing is made of. It stands behind [`Filters`], flattened as they are, and takes what is left.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Unknown(BTreeMap<String, IgnoredAny>);

impl Unknown {
    /// Refuses a name that is not known: a filter that was mistyped would ask about all events, and change them.
    pub(crate) fn refuse(&self) -> Result<(), Problem> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let filters = Filters::default().all().map(|(name, _)| format!("`{name}`")).join(", ");
        Err(Problem::bad(format!("`{name}` is no filter; filters are {filters}: correct the name, or leave it out")))
    }
}

impl Filters {
    /// All fields, by their names in an address.
    fn all(&self) -> [(&'static str, &str); 9] {
        [
            ("type", &self.event_type),
            ("aggregate", &self.aggregate),
            ("tenant", &self.tenant),
            ("handler", &self.handler),
            ("key", &self.key),
            ("state", &self.state),
            ("error", &self.error),
            ("since", &self.since),
            ("before", &self.before),
        ]
    }

    /// The fields that say something, by their names in an address.
    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().into_iter().filter(|(_, value)| !value.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields().next().is_none()
    }

    /// The query of an address: `type=order.placed&tenant=acme`, with these fields too.
    pub(crate) fn query(&self, others: &[(&str, &str)]) -> String {
        query(&self.fields().chain(others.iter().copied()).collect::<Vec<_>>())
    }

    /// The filter in words: `type order.placed, tenant acme`.
    pub(crate) fn words(&self) -> String {
        let words: Vec<String> = self.fields().map(|(name, value)| format!("{name} {value}")).collect();
        words.join(", ")
    }

    /// The fields of a form that sends this filter again.
    pub(crate) fn hidden(&self) -> Markup {
        html! { @for (name, value) in self.fields() { input type="hidden" name=(name) value=(value); } }
    }

    /// Refuses what would be shown as part of the filter, and ignored.
    fn has_nothing_of(&self, what: &str, names: &[&str]) -> Result<(), Problem> {
        match self.fields().find(|(name, _)| names.contains(name)) {
            Some((name, _)) => Err(Problem::bad(format!("`{name}` is no filter of {what} events; clear it"))),
            None => Ok(()),
        }
    }

    /// The filter of DEAD events, its ages counted back from the database's time.
    pub(crate) async fn dead(&self, store: &dyn Store) -> Result<DeadFilter, Problem> {
        self.has_nothing_of("DEAD", &["state"])?;
        let [since, before] = self.moments(store).await?;
        let filter = DeadFilter { since, before, error: text(&self.error), ..DeadFilter::new() };
        Ok(narrowed!(self, filter))
    }

    /// True if it is about pending events alone, which are listed in the order of the table.
    pub(crate) fn is_pending(&self) -> bool {
        let state = self.state.trim();
        state == PENDING || PendingState::ALL.into_iter().any(|pending| pending.name() == state)
    }

    /// The filter of events of any state, its ages counted back from the database's time.
    pub(crate) async fn any(&self, store: &dyn Store) -> Result<EventFilter, Problem> {
        let status = match text(&self.state).as_deref() {
            None => None,
            Some("done") => Some(Status::Done),
            Some("dead") => Some(Status::Dead),
            Some(_) => return Err(Problem::bad("`state` is no state of an event; choose one of the list")),
        };
        let [since, before] = self.moments(store).await?;
        let filter = EventFilter { status, since, before, error: text(&self.error), ..EventFilter::new() };
        Ok(narrowed!(self, filter))
    }

    /// The moments between which an event was given up, or written.
    async fn moments(&self, store: &dyn Store) -> Result<[Option<Timestamp>; 2], Problem> {
        Ok(Moment::times(store, [moment(&self.since, "since")?, moment(&self.before, "before")?]).await?)
    }

    /// The filter of pending events.
    pub(crate) fn pending(&self) -> Result<PendingFilter, Problem> {
        self.has_nothing_of("pending", &["error", "since", "before"])?;
        let wrong = || Problem::bad("`state` is none of pending, new, delayed and retrying; choose one of these");
        let state = match text(&self.state).filter(|state| state != PENDING) {
            None => None,
            Some(name) => Some(PendingState::ALL.into_iter().find(|state| state.name() == name).ok_or_else(wrong)?),
        };
        Ok(narrowed!(self, PendingFilter { state, ..PendingFilter::new() }))
    }
}

/// The query of an address with these fields: `type=order.placed&tenant=acme`.
pub(crate) fn query(fields: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, QUERY));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The text of a field of a form; `None` if it is empty.
pub(crate) fn text(field: &str) -> Option<String> {
    Some(field).filter(|field| !field.is_empty()).map(str::to_owned)
}

fn moment(field: &str, name: &str) -> Result<Option<Moment>, Problem> {
    let moment = text(field.trim()).map(|text| text.parse()).transpose();
    moment.map_err(|error: InvalidMoment| Problem::bad(format!("`{name}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_in_an_address_and_in_words() {
        let filter =
            Filters { event_type: "order placed&".to_owned(), tenant: " acme".to_owned(), ..Filters::default() };
        assert_eq!(filter.query(&[("after", "7")]), "type=order%20placed%26&tenant=%20acme&after=7");
        assert_eq!(filter.words(), "type order placed&, tenant  acme");
        assert!(Filters::default().is_empty() && !filter.is_empty());
    }

    #[test]
    fn a_name_that_is_mistyped_is_refused() {
        #[derive(Deserialize)]
        struct FilterForm {
            #[serde(flatten)]
            filters: Filters,
            #[serde(flatten)]
            unknown: Unknown,
        }
        let read = |form: serde_json::Value| serde_json::from_value::<FilterForm>(form).expect("it is read");
        let names = Filters::default().all().map(|(name, _)| name);
        let full = read(names.iter().map(|name| (*name, *name)).collect());
        assert_eq!(full.filters.fields().map(|(_, value)| value).collect::<Vec<_>>(), names);
        assert!(full.unknown.refuse().is_ok());
        let problem = read(serde_json::json!({"tennant": "acme", "type": "a"})).unknown.refuse();
        let problem = format!("{problem:?}");
        assert!(problem.contains("`tennant` is no filter") && problem.contains("`tenant`, `handler`"), "{problem}");
    }

    #[test]
    fn a_moment_that_is_none_is_refused_by_its_name() {
        assert_eq!(moment(" 2h", "since").ok().flatten(), Some(Moment::Ago(std::time::Duration::from_secs(7_200))));
        assert_eq!(moment(" ", "since").ok(), Some(None));
        let problem = format!("{:?}", moment("yesterday", "since"));
        assert!(problem.contains("`since`: it is neither an age"), "{problem}");
    }
}
