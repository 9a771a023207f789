use serde_json::{Value, json};

use crate::clock::Timestamp;

/// A failed attempt, as the history of its row keeps it: an element of the JSON array in the column `failures`.
///
/// A row keeps its last [`KEPT`](Self::KEPT) failed attempts: over a replay, and once it is DONE. They end
/// with the row. A deferral is no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Failed handler calls up to then, this one included if it counted. A replay begins anew at zero.
    pub attempts: u32,
    /// The time at which the failure was recorded, by the database's clock.
    pub at: Timestamp,
    /// The node that recorded it. For an attempt that ended with its process, that is the node that found it.
    pub node: String,
    /// The error, up to its [first 500 characters](Self::ERROR_CHARACTERS).
    pub error: String,
}

impl FailedAttempt {
    /// The number of failed attempts that a row keeps: the last ones.
    pub const KEPT: usize = 10;
    /// The number of characters that are kept of each error.
    pub const ERROR_CHARACTERS: usize = 500;

    /// The failed attempts of a row, from its column `failures`, oldest first. Entries of another form,
    /// as other programs may write them, are left out.
    #[must_use]
    pub fn all_of(column: Option<&str>) -> Vec<Self> {
        let elements: Vec<Value> = column.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        elements.iter().filter_map(Self::of).collect()
    }

    /// The column of a row with these failed attempts, which [`all_of`](Self::all_of) reads; `None` if there are none.
    pub(super) fn column(failures: &[Self]) -> Option<String> {
        let element = |failed: &Self| {
            let Self { attempts, at, node, error } = failed;
            json!({ "attempts": attempts, "at": at.as_micros(), "node": node, "error": error })
        };
        (!failures.is_empty()).then(|| Value::from_iter(failures.iter().map(element)).to_string())
    }

    fn of(element: &Value) -> Option<Self> {
        Some(Self {
            attempts: u32::try_from(element.get("attempts")?.as_u64()?).ok()?,
            at: Timestamp::from_micros(element.get("at")?.as_i64()?),
            node: element.get("node")?.as_str()?.to_owned(),
            error: element.get("error")?.as_str()?.to_owned(),
        })
    }

    /// Adds this attempt to those of a row, for stores without SQL: cuts its error, and drops the oldest if there are too many.
    pub fn add_to(mut self, failures: &mut Vec<Self>) {
        if let Some((end, _)) = self.error.char_indices().nth(Self::ERROR_CHARACTERS) {
            self.error.truncate(end);
        }
        if failures.len() >= Self::KEPT {
            failures.remove(0);
        }
        failures.push(self);
    }
}

#[cfg(test)]
mod tests {
    use super::FailedAttempt;
    use crate::clock::Timestamp;

    #[test]
    fn entries_that_another_program_wrote_are_left_out() {
        let ours = r#"{"attempts": 2, "at": 1700000000123456, "node": "n-1", "error": "it's \"late\"", "more": 1}"#;
        let failed = FailedAttempt {
            attempts: 2,
            at: Timestamp::from_micros(1_700_000_000_123_456),
            node: "n-1".to_owned(),
            error: "it's \"late\"".to_owned(),
        };
        for (column, found) in [
            (None, 0),
            (Some(String::new()), 0),
            (Some("no json".to_owned()), 0),
            (Some(ours.to_owned()), 0),
            (Some("[]".to_owned()), 0),
            (Some(format!("[{ours}]")), 1),
            (Some(format!("[1, null, {ours}, {{}}, {ours}]")), 2),
            (Some(r#"[{"attempts": -1, "at": 1, "node": "n", "error": "e"}]"#.to_owned()), 0),
        ] {
            let attempts = FailedAttempt::all_of(column.as_deref());
            assert_eq!(attempts, vec![failed.clone(); found], "{column:?}");
        }
    }

    #[test]
    fn a_history_and_its_errors_are_bounded() {
        let mut failures = Vec::new();
        for attempts in 1..=12 {
            let error = "é".repeat(FailedAttempt::ERROR_CHARACTERS + 1);
            FailedAttempt { attempts, at: Timestamp::from_micros(1), node: "n".to_owned(), error }
                .add_to(&mut failures);
        }
        assert_eq!(failures.iter().map(|failed| failed.attempts).collect::<Vec<_>>(), Vec::from_iter(3..=12));
        assert!(failures.iter().all(|failed| failed.error.chars().count() == FailedAttempt::ERROR_CHARACTERS));
    }
}
