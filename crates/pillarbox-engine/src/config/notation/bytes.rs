//! A number of bytes, written with its unit: `64MiB`, `500 kB`.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Larger ones first, so that a size is shown in the largest unit that it is a multiple of.
const UNITS: [(&str, usize); 6] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];

fn shown(bytes: usize) -> String {
    let (unit, size) = UNITS.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size)).unwrap_or(("B", 1));
    format!("{}{unit}", bytes / size)
}

fn parse(text: &str) -> Result<usize, String> {
    let problem = || format!("`{text}` is not a size: write a whole number and a unit, such as `64MiB` or `500kB`");
    let digits = text.trim().len() - text.trim().trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.trim().split_at_checked(digits).ok_or_else(problem)?;
    let unit = unit.trim();
    let known = UNITS.into_iter().chain([("B", 1)]).find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, size) = known.ok_or_else(problem)?;
    let number: usize = number.parse().map_err(|_| problem())?;
    number.checked_mul(size).ok_or_else(problem)
}

#[expect(missing_docs, reason = "the function that serde calls")]
pub fn serialize<S: Serializer>(bytes: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(*bytes))
}

#[expect(missing_docs, reason = "the function that serde calls")]
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    parse(&Cow::<str>::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        for (text, bytes) in
            [("64MiB", 64 << 20), (" 2 kib ", 2048), ("500kB", 500_000), ("1GB", 1_000_000_000), ("7B", 7)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!(parse(&shown(bytes)), Ok(bytes), "{text}");
        }
        for text in ["", "64", "MiB", "-1kB", "1.5MiB", "1XB", "99999999999999999999MiB", "é"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(shown(64 << 20), "64MiB");
    }
}
