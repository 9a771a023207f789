use std::time::Duration;

use pillarbox_core::clock::Timestamp;

/// The difference of the database's clock from this host's if it is `limit` at least, in words. The database was asked between `before` and
/// `after`; what the way there and back may have taken is in its favour.
pub(super) fn offset(database: Timestamp, before: Timestamp, after: Timestamp, limit: Duration) -> Option<String> {
    let (ahead, behind) = (database.since(after), before.since(database));
    let (offset, direction) = if ahead >= behind { (ahead, "ahead of") } else { (behind, "behind") };
    (offset >= limit).then(|| format!("the database's clock is {offset:?} {direction} this host's"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_beyond_the_time_of_the_question() {
        let at = Timestamp::from_micros;
        let second = Duration::from_secs(1);
        for (database, before, after, told) in [
            (1_000_000, 0, 2_000_000, None),
            (2_900_000, 0, 2_000_000, None),
            (3_000_000, 0, 2_000_000, Some("1s ahead of")),
            (0, 900_000, 3_000_000, None),
            (0, 5_500_000, 6_000_000, Some("5.5s behind")),
        ] {
            let found = offset(at(database), at(before), at(after), second);
            match told {
                None => assert_eq!(found, None, "{database}"),
                Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}: {part}"),
            }
        }
    }
}
