//! The pictures of a report.

use super::plot::{self, Frame, Line};
use super::run::{Run, speed};
use crate::failure::Failure;
use crate::figures::Sample;
use crate::lab::Counted;

/// A picture of the report.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) svg: String,
}

/// The number of parts that a run is divided into: shorter parts would show the batches rather than the speed.
const PARTS: f64 = 20.0;
/// The most lines that a legible picture can have.
const MOST_LINES: usize = 7;

/// The runs that deliver a backlog written before they start.
const BACKLOGS: [&str; 4] = ["drain single_node", "drain partitioned", "drain multi_node", "memory"];
/// The runs that write while they deliver. Their backlogs would be too small to see beside one written before the run.
const BESIDE_WRITERS: [&str; 3] = ["hot", "steady", "mixed"];

pub(crate) const PERCENTILES: [&str; 4] = ["p50", "p95", "p99", "max"];

/// The paths of the latencies from commit to handler, in microseconds, with a name for each.
pub(crate) const LATENCIES: [(&str, &str); 3] =
    [("/commit_to_handler_us", ""), ("/hot_us", ", same process"), ("/other_node_us", ", another node")];

/// All pictures that have something to show: no database counts everything.
pub(crate) fn all(runs: &[Run], counted: Counted) -> Result<Vec<Picture>, Failure> {
    let lines = |file, frame, names: &[&str], points| {
        let lines = over_time(runs, names, points);
        (!lines.is_empty()).then(|| picture(file, frame, plot::lines(frame, &lines)))
    };
    let bars = |file, frame, path| {
        let bars = per_event(runs, path);
        (!bars.is_empty()).then(|| picture(file, frame, plot::bars(frame, &bars)))
    };
    let steps = |file, frame| {
        let steps = latencies(runs);
        (!steps.is_empty()).then(|| picture(file, frame, plot::steps(frame, &PERCENTILES, &steps)))
    };
    let frame = |title, x, y| Frame { title, x, y };
    let statements = match counted {
        Counted::Statements => "Statements per event",
        Counted::Transactions => "Transactions per event",
    };
    let delivered = frame("Backlogs delivered, over time", "% of the run's time", "events/s");
    let pictures = [
        lines("throughput.svg", delivered, &BACKLOGS, throughput),
        lines("backlog.svg", frame("Backlog over time", "seconds", "events"), &BESIDE_WRITERS, backlog),
        steps("latency.svg", frame("From commit to handler", "", "milliseconds")),
        bars("wal.svg", frame("Log written per event", "bytes", ""), "/wal_bytes_per_event"),
        lines("dead_tuples.svg", frame("Dead rows over time", "seconds", "rows"), &BACKLOGS, dead_rows),
        bars("statements.svg", frame(statements, counted.name(), ""), "/statements_per_event"),
    ];
    pictures.into_iter().flatten().collect()
}

fn picture(file: &'static str, frame: Frame, svg: Result<String, Failure>) -> Result<Picture, Failure> {
    Ok(Picture { file, title: frame.title, svg: svg? })
}

type Points = Vec<(f64, f64)>;

/// A line for each run whose name begins as one of `names`.
fn over_time(runs: &[Run], names: &[&str], points: fn(&[Sample]) -> Points) -> Vec<Line> {
    let runs = runs.iter().filter(|run| names.iter().any(|name| run.name.starts_with(name)));
    let line = |run: &Run| Line { name: run.name.to_owned(), points: points(&run.samples()) };
    runs.map(line).filter(|line| line.points.len() > 1).take(MOST_LINES).collect()
}

/// The speed in equal parts of a run's time, so that runs of different lengths can be overlaid.
fn throughput(samples: &[Sample]) -> Points {
    let [first, .., end] = samples else { return Points::new() };
    let whole = end.seconds - first.seconds;
    let (mut from, mut points) = (*first, Points::new());
    for to in samples {
        if to.seconds - from.seconds >= whole / PARTS {
            points.extend(speed(&from, to).map(|per_s| (to.seconds / end.seconds * 100.0, per_s)));
            from = *to;
        }
    }
    points
}

fn backlog(samples: &[Sample]) -> Points {
    samples.iter().map(|sample| (sample.seconds, number(sample.backlog))).collect()
}

fn dead_rows(samples: &[Sample]) -> Points {
    samples.iter().filter_map(|sample| Some((sample.seconds, number(sample.dead_tuples?)))).collect()
}

fn latencies(runs: &[Run]) -> Vec<Line> {
    let of_run = |run: &'_ Run| {
        LATENCIES.map(|(path, of)| Line { name: format!("{}{of}", run.name), points: percentiles(run, path) })
    };
    runs.iter().flat_map(of_run).filter(|line| !line.points.is_empty()).take(MOST_LINES).collect()
}

fn percentiles(run: &Run, path: &str) -> Points {
    // The axis has no zero: less than a microsecond is drawn as one.
    let millis = |name: &str| Some(run.figure(&format!("{path}/{name}"))?.max(1.0) / 1e3);
    let steps = PERCENTILES.iter().zip(0_u32..);
    steps.filter_map(|(name, step)| Some((step.into(), millis(name)?))).collect()
}

fn per_event(runs: &[Run], path: &str) -> Vec<(String, f64)> {
    runs.iter().filter_map(|run| Some((run.name.to_owned(), run.figure(path)?))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a picture shows three digits")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::run::tests::{failed, run};
    use super::*;

    fn samples() -> serde_json::Value {
        let sample = |tenth: u32| {
            json!({"seconds": f64::from(tenth) / 10.0, "written": 100, "done": tenth * 10, "backlog": 100 - tenth * 10,
                   "dead_tuples": (tenth > 4).then_some(tenth), "wal_bytes": null})
        };
        json!({"samples": (0..=10).map(sample).collect::<Vec<_>>()})
    }

    #[test]
    fn a_run_is_drawn_as_it_went() {
        let runs = [
            run("drain", samples()),
            failed("drain x", "no server"),
            run("drain y", json!({})),
            run("idle", samples()),
        ];
        let drawn = over_time(&runs, &["drain"], throughput);
        assert_eq!((drawn.len(), drawn[0].name.as_str(), drawn[0].points.len()), (1, "drain", 10));
        assert_eq!(drawn[0].points.last().map(|(part, _)| *part), Some(100.0));
        assert!(drawn[0].points.iter().all(|(_, per_s)| (per_s - 100.0).abs() < 1e-6), "{drawn:?}");
        assert_eq!(over_time(&runs, &["idle"], backlog)[0].points.last(), Some(&(1.0, 0.0)));
        assert_eq!(
            over_time(&runs, &["drain"], dead_rows)[0].points.first(),
            Some(&(0.5, 5.0)),
            "from where it was known"
        );
    }

    #[test]
    fn latencies_are_drawn_in_milliseconds_and_never_as_nothing() {
        let latency = json!({"p50": 0, "p95": 500, "p99": 2000, "max": 30_000});
        let runs = [run("hot", json!({"commit_to_handler_us": latency})), run("write", json!({}))];
        let expected = Line { name: "hot".to_owned(), points: vec![(0.0, 0.001), (1.0, 0.5), (2.0, 2.0), (3.0, 30.0)] };
        assert_eq!(latencies(&runs), [expected]);
    }

    #[test]
    fn no_picture_has_more_lines_than_can_be_told_apart() {
        let runs = vec![run("drain", samples()); 20];
        assert_eq!(over_time(&runs, &["drain"], backlog).len(), MOST_LINES);
    }

    #[test]
    fn a_picture_of_nothing_is_not_drawn() {
        let files = |runs: &[Run]| {
            all(runs, Counted::Statements).unwrap().iter().map(|picture| picture.file).collect::<Vec<_>>()
        };
        assert_eq!(files(&[run("drain single_node", samples())]), ["throughput.svg", "dead_tuples.svg"]);
        assert_eq!(files(&[run("write", json!({"wal_bytes_per_event": 5}))]), ["wal.svg"]);
        assert!(files(&[failed("hot", "no server")]).is_empty());
    }
}
