use serde::Serialize;

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
    /// Demands a figure of at least `wanted`.
    pub(crate) fn at_least(wanted: f64, name: &'static str, figure: f64, meaning: &'static str) -> Self {
        Self { name, held: figure >= wanted, figure, wanted: format!("at least {wanted}"), meaning }
    }

    /// Demands a figure of at most `wanted`.
    pub(crate) fn at_most(wanted: f64, name: &'static str, figure: f64, meaning: &'static str) -> Self {
        Self { name, held: figure <= wanted, figure, wanted: format!("at most {wanted}"), meaning }
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
            assert_eq!(Verdict::at_least(0.99, "rate", figure, "").held, at_least, "{figure}");
            assert_eq!(Verdict::at_most(0.99, "rate", figure, "").held, at_most, "{figure}");
        }
        assert_eq!(Verdict::at_least(0.99, "rate", 1.0, "").wanted, "at least 0.99");
    }
}
