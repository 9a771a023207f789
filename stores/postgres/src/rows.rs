use pillarbox_core::store::RowId;
use tokio_postgres::types::Type;

use crate::session::Param;

/// Rows by column, as statements bind them.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    pub(crate) seqs: Vec<i64>,
    events: Vec<&'a str>,
    handlers: Vec<Option<&'a str>>,
}

impl<'a> Rows<'a> {
    /// The rows ascending by `seq`: statements find a row's event by the place of its `seq`, and calls that lock the same
    /// rows wait for each other and not in a circle.
    pub(crate) fn ascending(rows: impl IntoIterator<Item = &'a RowId>) -> Self {
        let mut ascending: Vec<&RowId> = rows.into_iter().collect();
        ascending.sort_unstable_by_key(|row| row.seq);
        let mut rows = Self::default();
        ascending.into_iter().for_each(|row| rows.push(row));
        rows
    }

    /// Adds a row above all the others.
    pub(crate) fn push(&mut self, row: &'a RowId) {
        self.seqs.push(row.seq);
        self.events.push(row.event_id.as_str());
        self.handlers.push(row.handler.as_deref());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }

    pub(crate) fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        params.extend([
            (&self.seqs as _, Type::INT8_ARRAY),
            (&self.events as _, Type::TEXT_ARRAY),
            (&self.handlers as _, Type::TEXT_ARRAY),
        ]);
    }
}

impl Rows<'_> {
    /// The rows in the form that costs least to compare, if their event ids have one length and they one handler.
    pub(crate) fn alike(&self) -> Option<Alike<'_>> {
        let (event, handler) = (self.events.first()?, *self.handlers.first()?);
        let length = i32::try_from(event.len()).ok()?;
        let alike = self.events.iter().all(|other| other.len() == event.len())
            && self.handlers.iter().all(|other| *other == handler);
        alike.then(|| Alike { seqs: &self.seqs, events: self.events.concat().into_bytes(), length, handler })
    }
}

/// Rows whose event ids have one length and which have one handler: the id of a row is found in `events` by its place, without
/// passing over those before it, and compared byte for byte.
#[derive(Debug)]
pub(crate) struct Alike<'a> {
    seqs: &'a Vec<i64>,
    events: Vec<u8>,
    length: i32,
    handler: Option<&'a str>,
}

impl Alike<'_> {
    pub(crate) fn are_dense(&self) -> bool {
        are_dense(self.seqs.iter().copied())
    }

    pub(crate) fn bind<'b>(&'b self, params: &mut Vec<Param<'b>>) {
        params.extend([
            (self.seqs as _, Type::INT8_ARRAY),
            (&self.events as _, Type::BYTEA),
            (&self.length as _, Type::INT4),
            (&self.handler as _, Type::TEXT),
        ]);
    }
}

/// True if it is cheaper to pass over what lies between rows than to look for each of them: two thirds of all that could lie from the
/// lowest to the highest are theirs.
pub(crate) fn are_dense(seqs: impl Iterator<Item = i64> + Clone) -> bool {
    let (Some(lowest), Some(highest)) = (seqs.clone().min(), seqs.clone().max()) else { return false };
    let span = highest.abs_diff(lowest).saturating_add(1);
    u64::try_from(seqs.count()).is_ok_and(|rows| rows.saturating_mul(3) >= span.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    #[test]
    fn rows_are_alike_with_ids_of_one_length_and_one_handler() {
        let row = |seq, event: &str, handler: Option<&str>| RowId {
            seq,
            event_id: EventId::from_stored(event),
            handler: handler.map(Box::from),
        };
        let both = [row(8, "e-2", Some("mailer")), row(7, "e-1", Some("mailer"))];
        let rows = Rows::ascending(&both);
        let alike = rows.alike().expect("alike");
        assert_eq!((&**alike.seqs, &*alike.events), (&[7, 8][..], &b"e-1e-2"[..]));
        assert_eq!((alike.length, alike.handler), (3, Some("mailer")));
        for other in [row(9, "e-10", Some("mailer")), row(9, "\u{e9}-3", Some("mailer")), row(9, "e-3", None)] {
            let rows = [both[1].clone(), other.clone()];
            assert!(Rows::ascending(&rows).alike().is_none(), "{other:?}");
        }
        assert!(Rows::ascending([]).alike().is_none());
    }

    #[test]
    fn rows_are_dense_where_few_numbers_between_them_are_missing() {
        for first in [1, i64::MAX - 900] {
            let every = |step: usize| (first..=first + 899).step_by(step);
            assert!(are_dense(every(1)) && are_dense((first..=first + 899).rev()) && are_dense(every(900)));
            assert!(!are_dense(every(2)), "every other one, as where two nodes share the partitions");
        }
        assert!(!are_dense([i64::MIN, i64::MAX].into_iter()) && !are_dense(std::iter::empty()));
    }
}
