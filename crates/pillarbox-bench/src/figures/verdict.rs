use std::fmt;

use serde::Serialize;

use Bound::{AtLeast, AtMost};

/// A bound on a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    pub(crate) fn is_reached_by(self, figure: f64) -> bool {
        match self {
            AtLeast(bound) => figure >= bound,
            AtMost(bound) => figure <= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtLeast(bound) => write!(f, "at least {bound}"),
            AtMost(bound) => write!(f, "at most {bound}"),
        }
    }
}

/// The verdict on one demand of a bench. As JSON its keys are a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) name: &'static str,
    pub(crate) held: bool,
    pub(crate) figure: f64,
    /// The bound, in words such as "at least 0.99".
    pub(crate) wanted: String,
    #[serde(skip)]
    meaning: &'static str,
}

impl Verdict {
    pub(crate) fn new(wanted: Bound, name: &'static str, figure: f64, meaning: &'static str) -> Self {
        Self { name, held: wanted.is_reached_by(figure), figure, wanted: wanted.to_string(), meaning }
    }

    pub(super) fn sentence(&self) -> String {
        let Self { name, figure, wanted, meaning, .. } = self;
        let held = if self.held { "held" } else { "BROKEN" };
        format!("{held}: {name} is {figure}, and should be {wanted}: {meaning}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_broken_by_what_is_beyond_its_bound_and_by_what_is_no_number() {
        let table = [(0.98, false, true), (0.99, true, true), (1.0, true, false), (f64::NAN, false, false)];
        for (figure, at_least, at_most) in table {
            assert_eq!(Verdict::new(AtLeast(0.99), "rate", figure, "").held, at_least, "{figure}");
            assert_eq!(Verdict::new(AtMost(0.99), "rate", figure, "").held, at_most, "{figure}");
        }
        assert_eq!(Verdict::new(AtLeast(0.99), "rate", 1.0, "").wanted, "at least 0.99");
    }
}
