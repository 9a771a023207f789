use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written with its unit: `64MiB`, `500 kB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(
    /// The number.
    pub usize,
);

/// Larger ones first, so that a size is shown in the largest unit that it is a multiple of.
const UNITS: [(&str, usize); 6] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| self.0 > 0 && self.0.is_multiple_of(*size)).unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("`{text}` is not a size: write a whole number and a unit, such as `64MiB` or `500kB`");
        let digits = text.trim().len() - text.trim().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.trim().split_at_checked(digits).ok_or_else(problem)?;
        let unit = unit.trim();
        let known = UNITS.into_iter().chain([("B", 1)]).find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let (_, size) = known.ok_or_else(problem)?;
        let number: usize = number.parse().map_err(|_| problem())?;
        number.checked_mul(size).map(Self).ok_or_else(problem)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        for (text, bytes) in
            [("64MiB", 64 << 20), (" 2 kib ", 2048), ("500kB", 500_000), ("1GB", 1_000_000_000), ("7B", 7)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
            assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "64", "MiB", "-1kB", "1.5MiB", "1XB", "99999999999999999999MiB", "é"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(ByteSize(64 << 20).to_string(), "64MiB");
    }
}
