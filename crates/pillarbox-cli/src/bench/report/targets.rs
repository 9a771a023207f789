//! What speed is promised, and whether it was reached.

use super::plan::PLAIN;
use super::run::Run;

/// A figure that a bench has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    /// The run that shows it.
    pub(crate) run: &'static str,
    /// Where the figure is in what the run printed.
    figure: &'static str,
    /// The run whose same figure it is divided by.
    to: Option<&'static str>,
    pub(crate) bound: Bound,
    /// What the figure counts.
    pub(crate) unit: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

/// Events per second to the yardstick of the same run.
const RATIO: &str = "/ratio";
const RATE: &str = "/events_per_s";
const DONE_IN_TIME: &str = "/done_within_1s";
const WRITE_RATIO: &str = "/write_ratio";

const OF_YARDSTICK: &str = "of the yardstick";
const OF_PLAIN: &str = "of `partitioned`";

#[rustfmt::skip]
pub(crate) const TARGETS: [Target; 13] = [
    target("cold drain, `single_node`", "drain single_node", RATIO, AtLeast(0.40), OF_YARDSTICK),
    target("cold drain, `partitioned`", PLAIN, RATIO, AtLeast(0.40), OF_YARDSTICK),
    target("cold drain, `single_node`, rows deleted", "drain single_node, delete", RATIO, AtLeast(0.80), OF_YARDSTICK),
    target("cold drain, `partitioned`, rows deleted", "drain partitioned, delete", RATIO, AtLeast(0.80), OF_YARDSTICK),
    target("cold drain, `multi_node`, two nodes", "drain multi_node, 2 nodes", RATIO, AtLeast(0.30), OF_YARDSTICK),
    target("with 1 M pending", "1 M pending", RATE, AtLeast(0.80), OF_PLAIN).to(PLAIN),
    target("with 10 M DONE rows in the table", "10 M DONE", RATE, AtLeast(0.80), OF_PLAIN).to(PLAIN),
    target("hot: DONE within 1 s of the commit", "hot", DONE_IN_TIME, AtLeast(1.0), "of the events"),
    target("hot: written beside the delivery", "hot", WRITE_RATIO, AtLeast(0.80), "of writing alone"),
    target("business row with an event", "write", WRITE_RATIO, AtLeast(0.85), "of the row alone"),
    target("1,000 events in one write", "write", RATIO, AtLeast(0.60), OF_YARDSTICK),
    target("the same: delivered twice", "drain multi_node, 2 nodes", "/duplicates", AtMost(0.0), "calls"),
    target("cold drain, `partitioned`: out of order", PLAIN, "/out_of_order", AtMost(0.0), "events"),
];

const fn target(
    what: &'static str,
    run: &'static str,
    figure: &'static str,
    bound: Bound,
    unit: &'static str,
) -> Target {
    Target { what, run, figure, to: None, bound, unit }
}

impl Target {
    const fn to(self, run: &'static str) -> Self {
        Self { to: Some(run), ..self }
    }

    /// The figure that is held against the bound; `None` if it was not measured.
    pub(crate) fn measured(&self, runs: &[Run]) -> Option<f64> {
        let figure = |name| runs.iter().find(|run| run.name == name)?.figure(self.figure);
        let measured = figure(self.run)?;
        match self.to {
            None => Some(measured),
            Some(other) => figure(other).filter(|figure| *figure > 0.0).map(|figure| measured / figure),
        }
    }
}

impl Bound {
    pub(crate) fn is_reached_by(self, figure: f64) -> bool {
        match self {
            AtLeast(bound) => figure >= bound,
            AtMost(bound) => figure <= bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::plan::{Size, benches, cliffs};
    use super::super::run::tests::{failed, run};
    use super::*;

    #[test]
    fn every_target_is_measured_by_a_run_of_the_plan() {
        let entries = [benches(Size::Full), cliffs(Size::Full)].concat();
        for target in TARGETS {
            for name in [Some(target.run), target.to].into_iter().flatten() {
                assert!(entries.iter().any(|entry| entry.name == name), "{name}");
            }
        }
    }

    #[test]
    fn a_figure_is_divided_by_that_of_another_run_where_the_target_says_so() {
        let runs = [run("a", json!({"rate": 50})), run("b", json!({"rate": 200})), failed("c", "no")];
        let plain = target("", "a", "/rate", AtLeast(60.0), "");
        assert_eq!(plain.measured(&runs), Some(50.0));
        assert_eq!(plain.to("b").measured(&runs), Some(0.25));
        assert_eq!(plain.to("c").measured(&runs), None);
        assert_eq!(target("", "c", "/rate", AtLeast(1.0), "").measured(&runs), None);
    }

    #[test]
    fn a_bound_is_reached_from_its_side_and_by_no_number_that_is_none() {
        for (figure, at_least, at_most) in
            [(0.9, false, true), (1.0, true, true), (1.1, true, false), (f64::NAN, false, false)]
        {
            assert_eq!(AtLeast(1.0).is_reached_by(figure), at_least, "{figure}");
            assert_eq!(AtMost(1.0).is_reached_by(figure), at_most, "{figure}");
        }
    }
}
