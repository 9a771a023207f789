//! The promised speeds, and the figures to compare with them.

use super::plan::PLAIN;
use super::run::Run;
use crate::figures::Bound::{self, AtLeast, AtMost};

/// A figure that a bench has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    /// The run that shows it.
    pub(crate) run: &'static str,
    /// The path of the figure in the run's output.
    figure: &'static str,
    /// The run, and the path of its figure, that it is divided by.
    to: Option<(&'static str, &'static str)>,
    /// The path that must be `true` in the run's output; otherwise the target does not apply.
    given: Option<&'static str>,
    pub(crate) bound: Bound,
    /// The unit of the figure.
    pub(crate) unit: &'static str,
}

/// Events per second to the yardstick of the same run.
const RATIO: &str = "/ratio";
const RATE: &str = "/events_per_s";
const DONE_IN_TIME: &str = "/done_within_1s";
const WRITE_RATIO: &str = "/write_ratio";
const P99: &str = "/commit_to_handler_us/p99";

/// Databases that cannot wake another node have no target for it.
const WOKEN: &str = "/other_node_is_woken";
/// The peak of the largest of three backlogs.
const LARGEST: &str = "/peaks/2/peak_memory_bytes";

const OF_YARDSTICK: &str = "of the yardstick";
const OF_PLAIN: &str = "of `partitioned`";

#[rustfmt::skip]
pub(crate) const TARGETS: [Target; 25] = [
    target("cold drain, `single_node`", "drain single_node", RATIO, AtLeast(0.40), OF_YARDSTICK),
    target("cold drain, `partitioned`", PLAIN, RATIO, AtLeast(0.40), OF_YARDSTICK),
    target("the same: out of the order of their key", PLAIN, "/out_of_order", AtMost(0.0), "events"),
    target("cold drain, `single_node`, rows deleted", "drain single_node, delete", RATIO, AtLeast(0.80), OF_YARDSTICK),
    target("cold drain, `partitioned`, rows deleted", "drain partitioned, delete", RATIO, AtLeast(0.80), OF_YARDSTICK),
    target("cold drain, `multi_node`, two nodes", "drain multi_node, 2 nodes", RATIO, AtLeast(0.30), OF_YARDSTICK),
    target("the same: delivered twice", "drain multi_node, 2 nodes", "/duplicates", AtMost(0.0), "calls"),
    target("with 1 M pending", "1 M pending", RATE, AtLeast(0.80), OF_PLAIN).to(PLAIN, RATE),
    target("with 10 M DONE rows in the table", "10 M DONE", RATE, AtLeast(0.80), OF_PLAIN).to(PLAIN, RATE),
    target("with an idle transaction open", "an idle transaction", RATE, AtLeast(0.80), OF_PLAIN).to(PLAIN, RATE),
    target("8 writers and one node: backlog", "mixed", "/backlog_s", AtMost(1.0), "s of load"),
    target("8 writers and one node: commit to handler", "mixed", P99, AtMost(100_000.0), "µs, p99"),
    target("hot: DONE within 1 s of the commit", "hot", DONE_IN_TIME, AtLeast(1.0), "of the events"),
    target("hot: written beside the delivery", "hot", WRITE_RATIO, AtLeast(0.80), "of writing alone"),
    target("commit to handler, same process", "latency", "/hot_us/p99", AtMost(1_000.0), "µs, p99"),
    target("commit to handler, another node, woken", "latency", "/other_node_us/p99", AtMost(10_000.0), "µs, p99").given(WOKEN),
    target("commit to handler, rows inserted by SQL, looked for every 10 ms", "latency", "/foreign_us/p99", AtMost(20_000.0), "µs, p99"),
    target("commit to `delivered`, in another process", "latency", "/delivered_us/p99", AtMost(20_000.0), "µs, p99"),
    target("business row with an event", "write", WRITE_RATIO, AtLeast(0.85), "of the row alone"),
    target("1,000 events in one write", "write", RATIO, AtLeast(0.60), OF_YARDSTICK),
    target("the engine alone", "overhead", RATE, AtLeast(1_000_000.0), "events/s"),
    target("idle: statements", "idle", "/modes/*/statements_per_s", AtMost(1.0), "per second"),
    target("idle: CPU", "idle", "/modes/*/cpu_percent", AtMost(1.0), "% of a core"),
    target("memory while draining 1 M", "memory", LARGEST, AtMost(50.0 * 1_048_576.0), "bytes at their peak"),
    target("the same: is it flat?", "memory", LARGEST, AtMost(1.25), "of that with 10 k").to("memory", "/peaks/0/peak_memory_bytes"),
];

const fn target(
    what: &'static str,
    run: &'static str,
    figure: &'static str,
    bound: Bound,
    unit: &'static str,
) -> Target {
    Target { what, run, figure, to: None, given: None, bound, unit }
}

impl Target {
    const fn to(self, run: &'static str, figure: &'static str) -> Self {
        Self { to: Some((run, figure)), ..self }
    }

    const fn given(self, path: &'static str) -> Self {
        Self { given: Some(path), ..self }
    }

    /// The bound on databases other than PostgreSQL, which have yardsticks of their own; `None` if there is none.
    pub(crate) fn elsewhere(&self) -> Option<Bound> {
        const OF_ITS_YARDSTICK: f64 = 0.25;
        match self.unit {
            OF_YARDSTICK => self.run.starts_with("drain").then_some(AtLeast(OF_ITS_YARDSTICK)),
            _ => Some(self.bound),
        }
    }

    /// The figure that is held against the bound; `None` if it was not measured.
    pub(crate) fn measured(&self, runs: &[Run]) -> Option<f64> {
        let find = |name| runs.iter().find(|run| run.name == name);
        let figure = |name, path| find(name)?.figure(path);
        if self.given.is_some_and(|path| !find(self.run).is_some_and(|run| run.says(path))) {
            return None;
        }
        let measured = figure(self.run, self.figure)?;
        match self.to {
            None => Some(measured),
            Some((run, path)) => figure(run, path).filter(|figure| *figure > 0.0).map(|figure| measured / figure),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::plan::Size;
    use super::super::plan::tests::all;
    use super::super::run::tests::{failed, run};
    use super::*;

    #[test]
    fn every_target_is_measured_by_a_run_of_the_plan() {
        let entries = all(Size::Full);
        for target in TARGETS {
            for name in [Some(target.run), target.to.map(|(run, _)| run)].into_iter().flatten() {
                assert!(entries.iter().any(|entry| entry.name == name), "{name}");
            }
        }
    }

    #[test]
    fn a_figure_is_divided_by_that_of_another_run_where_the_target_says_so() {
        let runs = [run("a", json!({"rate": 50})), run("b", json!({"rate": 200, "woken": true})), failed("c", "no")];
        let plain = target("", "a", "/rate", AtLeast(60.0), "");
        assert_eq!(target("", "b", "/rate", AtLeast(60.0), "").given("/woken").measured(&runs), Some(200.0));
        assert_eq!(plain.measured(&runs), Some(50.0));
        assert_eq!(plain.to("b", "/rate").measured(&runs), Some(0.25));
        assert_eq!(plain.to("c", "/rate").measured(&runs), None);
        assert_eq!(plain.given("/woken").measured(&runs), None);
        assert_eq!(target("", "c", "/rate", AtLeast(1.0), "").measured(&runs), None);
    }
}
