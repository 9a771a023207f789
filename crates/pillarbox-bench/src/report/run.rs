use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::figures::Sample;
use pillarbox_program::report::{counted, per_second};

/// A bench that was run, and its end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    pub(crate) name: &'static str,
    /// The command that runs it again, without the database.
    pub(crate) command: String,
    #[serde(flatten)]
    pub(crate) end: End,
}

/// The end of a bench.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// The figures it printed.
    Figures(Value),
    /// The reason why it printed none.
    Failure(String),
}

impl Run {
    /// A figure by its path, as in `/ratio` or `/commit_to_handler_us/p99`. Of a list, as in `/modes/*/cpu_percent`, it is
    /// the highest.
    pub(crate) fn figure(&self, path: &str) -> Option<f64> {
        let End::Figures(figures) = &self.end else { return None };
        match path.split_once("/*") {
            None => figures.pointer(path)?.as_f64(),
            Some((list, path)) => {
                let items = figures.pointer(list)?.as_array()?.iter();
                items.filter_map(|item| item.pointer(path)?.as_f64()).reduce(f64::max)
            }
        }
    }

    /// True if its output has `true` at this path.
    pub(crate) fn says(&self, path: &str) -> bool {
        matches!(&self.end, End::Figures(figures) if figures.pointer(path) == Some(&Value::Bool(true)))
    }

    /// The samples of the run, if the bench printed any.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let End::Figures(figures) = &self.end else { return Vec::new() };
        let samples = figures.get("samples").and_then(|samples| Vec::deserialize(samples).ok());
        samples.unwrap_or_default()
    }

    /// The speed over the last third of the events, divided by that over the first. `None` if the run is too short for
    /// that.
    pub(crate) fn steadiness(&self) -> Option<f64> {
        const WORTH_IT: usize = 12;
        let samples = self.samples();
        let end = samples.last().filter(|_| samples.len() >= WORTH_IT)?;
        let reached = |part: u64| samples.iter().find(|sample| sample.done >= part);
        let begun = samples.iter().take_while(|sample| sample.done == 0).last().or(samples.first())?;
        let first = speed(begun, reached(end.done.div_ceil(3))?)?;
        let last = speed(reached((end.done * 2).div_ceil(3))?, reached(end.done)?)?;
        (first > 0.0).then(|| last / first)
    }

    /// The problem with the run, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let figures = match &self.end {
            End::Figures(figures) => figures,
            End::Failure(failure) => return Some(failure.clone()),
        };
        let count = |key| figures.get(key).and_then(Value::as_u64).filter(|count| *count > 0);
        let mut problems = Vec::new();
        problems.extend(count("lost").map(|lost| format!("{} lost", counted(lost, "event"))));
        problems.extend(count("duplicates").map(|calls| counted(calls, "duplicate")));
        problems.extend(count("out_of_order").map(|events| format!("{} out of order", counted(events, "event"))));
        let verdicts = figures.get("verdicts").and_then(Value::as_array).into_iter().flatten();
        problems.extend(verdicts.filter(|verdict| verdict["held"] == false).map(broken));
        (!problems.is_empty()).then(|| problems.join("; "))
    }
}

/// Events per second between two samples.
pub(crate) fn speed(from: &Sample, to: &Sample) -> Option<f64> {
    let seconds = to.seconds - from.seconds;
    (seconds > 0.0).then(|| per_second(to.done.saturating_sub(from.done), seconds))
}

fn broken(verdict: &Value) -> String {
    let text = |key: &str| verdict[key].as_str().unwrap_or("?").to_owned();
    format!("{} is {}, wanted {}", text("name"), verdict["figure"], text("wanted"))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn run(name: &'static str, figures: Value) -> Run {
        Run { name, command: format!("pillarbox bench {name}"), end: End::Figures(figures) }
    }

    pub(crate) fn failed(name: &'static str, failure: &str) -> Run {
        Run { name, command: format!("pillarbox bench {name}"), end: End::Failure(failure.to_owned()) }
    }

    #[test]
    fn a_figure_is_found_by_its_path() {
        let modes = json!([{"cpu": 1}, {"cpu": 3}, {"cpu": null}]);
        let run = run("hot", json!({"ratio": 0.5, "latency": {"p99": 7}, "store": "x", "modes": modes}));
        assert_eq!((run.figure("/modes/*/cpu"), run.figure("/modes/*/none")), (Some(3.0), None));
        assert_eq!(
            ["/ratio", "/latency/p99", "/store", "/none"].map(|path| run.figure(path)),
            [Some(0.5), Some(7.0), None, None]
        );
        assert_eq!(failed("hot", "no").figure("/ratio"), None);
    }

    #[test]
    fn everything_that_was_wrong_is_said() {
        let verdicts = json!([
            {"name": "rate", "held": true, "figure": 1.0, "wanted": "at least 0.99"},
            {"name": "backlog", "held": false, "figure": 2.5, "wanted": "at most 1"},
        ]);
        let run_of = |figures| run("steady", figures).problem();
        assert_eq!(run_of(json!({"lost": 0, "duplicates": 0, "verdicts": []})), None);
        assert_eq!(
            run_of(json!({"lost": 1, "duplicates": 2000, "out_of_order": 3, "verdicts": verdicts})).unwrap(),
            "1 event lost; 2,000 duplicates; 3 events out of order; backlog is 2.5, wanted at most 1"
        );
        assert_eq!(failed("steady", "no server").problem().unwrap(), "no server");
    }

    #[test]
    fn steadiness_compares_the_last_third_with_the_first() {
        // 10 events in each step of a second, after two steps of starting; then 5 in each from event 60 on.
        let done = [0, 0, 10, 20, 30, 40, 50, 60, 65, 70, 75, 80, 85, 90];
        let sample = |(second, done): (usize, &u64)| json!({"seconds": second, "written": 90, "done": done, "backlog": 90 - done});
        let samples: Vec<_> = done.iter().enumerate().map(sample).collect();
        assert_eq!(run("drain", json!({"samples": samples})).steadiness(), Some(0.5));
        assert_eq!(
            run("drain", json!({"samples": samples[2..]})).steadiness(),
            Some(0.5),
            "begun before it was looked at"
        );
        assert_eq!(run("drain", json!({"samples": samples[..5]})).steadiness(), None, "too few to say");
        assert_eq!(run("drain", json!({})).steadiness(), None);
    }
}
