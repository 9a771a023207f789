//! The report as a page to read: pure functions of the figures.

use std::fmt::Write as _;

use super::plan::PLAIN;
use super::plots::{LATENCIES, PERCENTILES};
use super::run::{End, Run};
use super::targets::TARGETS;
use super::{Report, plots};
use crate::figures::Bound;
use crate::lab::Counted;
use pillarbox_program::report::{self, grouped, rate};

/// The lowest ratio to the plain drain that is not marked as a cliff.
const CLIFF: f64 = 0.5;

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let Report { machine, counted, quick, planned, benches, cliffs } = report;
    let runs = [benches.as_slice(), cliffs].concat();
    let mut page = String::from("# How fast it is here\n");
    let mut section = |title: &str, body: String| {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## {title}\n\n{body}");
    };
    if *quick {
        section(
            "Not a measurement",
            "`--quick` runs everything with numbers that are too small to mean anything.\n".into(),
        );
    }
    section("Machine", facts(&machine.facts()));
    section("What went wrong", unfinished(runs.len(), *planned) + &problems(&runs));
    section("Targets", targets(report, &runs));
    section("Benches", figures(benches));
    section("From commit to handler", latencies(&runs));
    section("No cliffs", no_cliffs(benches, cliffs, *quick));
    section("What an event costs", costs(&runs, *counted));
    section("Pictures", pictures(benches, *counted));
    section("Do it again", commands(&runs));
    page
}

fn facts(facts: &[(String, String)]) -> String {
    let rows = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
    table(&["", ""], rows)
}

/// A remark if the report was written before the last bench had run.
fn unfinished(ran: usize, planned: usize) -> String {
    if ran < planned {
        format!("**Not finished:** {ran} of {planned} benches have run. Of these:\n\n")
    } else {
        String::new()
    }
}

fn problems(runs: &[Run]) -> String {
    let wrong: Vec<_> = runs.iter().filter_map(|run| Some(vec![run.name.to_owned(), run.problem()?])).collect();
    if wrong.is_empty() {
        return "Nothing: no event was lost, doubled or out of order, and every verdict held.\n".to_owned();
    }
    table(&["Bench", "Problem"], wrong)
}

fn targets(report: &Report, runs: &[Run]) -> String {
    let is_postgres = report.machine.database.first().is_some_and(|(name, _)| name == "PostgreSQL");
    let rows = TARGETS.iter().filter_map(|target| {
        let bound = if is_postgres { target.bound } else { target.elsewhere()? };
        let (sign, number) = match bound {
            Bound::AtLeast(number) => ("≥", number),
            Bound::AtMost(number) => ("≤", number),
        };
        let measured = target.measured(runs);
        let reached = match measured {
            Some(_) if report.quick => "too small to tell",
            Some(figure) if bound.is_reached_by(figure) => "reached",
            Some(_) => "**NOT reached**",
            None => "not measured",
        };
        let per_s = runs.iter().find(|run| run.name == target.run).and_then(|run| run.figure("/events_per_s"));
        Some(vec![
            target.what.replace("statements", report.counted.name()),
            per_s.map_or_else(dash, rate),
            measured.map_or_else(dash, plain),
            format!("{sign} {}", plain(number)),
            target.unit.to_owned(),
            reached.to_owned(),
        ])
    });
    let text = if is_postgres {
        ""
    } else {
        "Each database has a yardstick of its own, and ratios to it are not those of another. A quarter of it is wanted of a \
         drain here.\n\n"
    };
    text.to_owned() + &table(&["What", "Events", "Measured", "Target", "Of what", ""], rows)
}

fn figures(runs: &[Run]) -> String {
    let rows = runs.iter().map(|run| {
        let figure = |path| run.figure(path);
        vec![
            run.name.to_owned(),
            figure("/events_per_s").map_or_else(dash, rate),
            figure("/yardstick_per_s").map_or_else(dash, rate),
            figure("/ratio").map_or_else(dash, plain),
            run.steadiness().map_or_else(dash, plain),
            remark(run),
        ]
    });
    let text = "*Steady* is the speed of the last third of the events to that of the first; 1 is flat.\n\n";
    text.to_owned() + &table(&["Bench", "Events", "Yardstick", "Ratio", "Steady", ""], rows)
}

fn latencies(runs: &[Run]) -> String {
    let percentiles = |run: &Run, path: &str| PERCENTILES.map(|name| run.figure(&format!("{path}/{name}")));
    let ways = runs.iter().flat_map(|run| LATENCIES.map(|(path, way)| (run, way, percentiles(run, path))));
    let rows =
        ways.filter(|(_, _, percentiles)| percentiles.iter().any(Option::is_some)).map(|(run, way, percentiles)| {
            let name = format!("{}{way}", run.name);
            let times = percentiles.map(|time| time.map_or_else(dash, duration));
            [name].into_iter().chain(times).collect()
        });
    table(&["Bench", "p50", "p95", "p99", "max"], rows)
}

fn no_cliffs(benches: &[Run], cliffs: &[Run], quick: bool) -> String {
    let per_s = |run: &Run| run.figure("/events_per_s");
    let of_plain = benches.iter().find(|run| run.name == PLAIN).and_then(per_s).filter(|per_s| *per_s > 0.0);
    let rows = cliffs.iter().map(|run| {
        let ratio = per_s(run).zip(of_plain).map(|(per_s, plain)| per_s / plain);
        let bytes = per_s(run).zip(run.figure("/payload_bytes")).map(|(per_s, bytes)| per_s * bytes / 1e6);
        let mark = if !quick && ratio.is_some_and(|ratio| ratio < CLIFF) { "**below half**" } else { "" };
        vec![
            run.name.to_owned(),
            per_s(run).map_or_else(dash, rate),
            bytes.map_or_else(dash, |megabytes| format!("{} MB/s", plain(megabytes))),
            ratio.map_or_else(dash, plain),
            run.steadiness().map_or_else(dash, plain),
            mark.to_owned(),
            verdict(run),
        ]
    });
    let plain = of_plain.map_or_else(dash, rate);
    let text =
        format!("Each is the same drain, in mode `partitioned`, with one thing changed. The plain one: {plain}.\n\n");
    text + &table(&["With", "Events", "Payload", "To plain", "Steady", "", ""], rows)
}

fn costs(runs: &[Run], counted: Counted) -> String {
    let rows = runs.iter().filter(|run| matches!(run.end, End::Figures(_))).map(|run| {
        let figure = |path| run.figure(path).map_or_else(dash, plain);
        vec![
            run.name.to_owned(),
            figure("/wal_bytes_per_event"),
            figure("/statements_per_event"),
            figure("/dead_tuples"),
            figure("/client_cpu_us_per_event"),
        ]
    });
    let asked = match counted {
        Counted::Statements => "Statements",
        Counted::Transactions => "Transactions",
    };
    let heading = ["Bench", "Log, B", asked, "Dead rows at the end", "CPU of the client, µs"];
    "A dash is what this database does not count.\n\n".to_owned() + &table(&heading, rows)
}

fn pictures(benches: &[Run], counted: Counted) -> String {
    let pictures = plots::all(benches, counted).unwrap_or_default();
    let lines: Vec<String> =
        pictures.iter().map(|picture| format!("![{}]({})\n", picture.title, picture.file)).collect();
    if lines.is_empty() { "There is nothing to show yet.\n".to_owned() } else { lines.join("\n") }
}

fn commands(runs: &[Run]) -> String {
    let lines: String = runs.iter().map(|run| format!("{}\n", run.command)).collect();
    format!("The database is named by the variable `PILLARBOX_STORE`, or by `--store`.\n\n```sh\n{lines}```\n")
}

fn duration(micros: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a printed time is small and positive")]
    let whole = micros.round() as u64;
    report::micros(whole)
}

fn remark(run: &Run) -> String {
    let naive = run.figure("/naive_ratio").map(|ratio| format!("{} times the naive loop", plain(ratio)));
    naive.filter(|_| run.problem().is_none()).unwrap_or_else(|| verdict(run))
}

fn verdict(run: &Run) -> String {
    run.problem().map_or_else(String::new, |_| "**FAILED**".to_owned())
}

fn dash() -> String {
    "–".to_owned()
}

/// A figure with its significant digits.
fn plain(figure: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was just found to be at least 100")]
    match figure {
        100.0.. => grouped(figure.round() as u64),
        10.0.. => format!("{figure:.1}"),
        _ => format!("{figure:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| {
        format!("| {} |\n", cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" | "))
    };
    let mut table = line(heading.iter().map(ToString::to_string).collect());
    table += &format!("|{}\n", "---|".repeat(heading.len()));
    table.extend(rows.into_iter().map(line));
    table
}

/// A cell without the characters that would end it or its row.
fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::machine::Machine;
    use super::super::run::tests::{failed, run};
    use super::*;

    fn report(benches: Vec<Run>, cliffs: Vec<Run>) -> Report {
        let database = vec![("PostgreSQL".to_owned(), "15".to_owned())];
        let machine = Machine {
            cores: Some(2),
            memory_bytes: Some(25_000_000_000),
            system: "Plan 9, x86_64".to_owned(),
            database,
        };
        let counted = Counted::Statements;
        Report { machine, counted, quick: false, planned: benches.len() + cliffs.len(), benches, cliffs }
    }

    /// The lines of a section.
    fn section<'a>(page: &'a str, title: &str) -> Vec<&'a str> {
        let lines = page.lines().skip_while(|line| *line != format!("## {title}")).skip(1);
        lines.take_while(|line| !line.starts_with("## ")).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn a_page_says_where_it_was_measured_and_that_nothing_went_wrong() {
        let page = page(&report(vec![run("write", json!({}))], Vec::new()));
        assert_eq!(
            section(&page, "Machine")[2..],
            ["| System | Plan 9, x86_64 |", "| Cores | 2 |", "| Memory | 24 GiB |", "| PostgreSQL | 15 |"]
        );
        assert!(section(&page, "What went wrong")[0].starts_with("Nothing"));
        assert!(!page.contains("Not a measurement"));
    }

    #[test]
    fn a_target_is_reached_or_not_or_not_measured() {
        let runs = vec![
            run("drain single_node", json!({"events_per_s": 120_000.4, "ratio": 0.4562})),
            run(PLAIN, json!({"events_per_s": 90_000, "ratio": 0.3951})),
            failed("hot", "no server"),
        ];
        let page = page(&report(runs, Vec::new()));
        let lines = section(&page, "Targets");
        let line = |what: &str| lines.iter().find(|line| line.contains(what)).copied().unwrap_or_default();
        assert_eq!(
            line("cold drain, `single_node` "),
            "| cold drain, `single_node` | 120,000/s | 0.456 | ≥ 0.4 | of the yardstick | reached |"
        );
        assert!(line("cold drain, `partitioned` ").ends_with("| 0.395 | ≥ 0.4 | of the yardstick | **NOT reached** |"));
        assert!(line("hot: written").ends_with("| – | ≥ 0.8 | of writing alone | not measured |"));
    }

    #[test]
    fn a_report_that_was_ended_early_or_run_quickly_claims_less() {
        let runs = vec![run(PLAIN, json!({"events_per_s": 1000, "ratio": 0.1}))];
        let cliffs = vec![run("1 worker", json!({"events_per_s": 10}))];
        let early = Report { planned: 36, ..report(runs.clone(), cliffs.clone()) };
        assert_eq!(
            section(&page(&early), "What went wrong")[0],
            "**Not finished:** 2 of 36 benches have run. Of these:"
        );
        let quick = page(&Report { quick: true, ..report(runs, cliffs) });
        assert!(
            quick.contains("too small to tell") && !quick.contains("**NOT reached**") && !quick.contains("below half")
        );
    }

    #[test]
    fn another_database_is_held_against_a_yardstick_of_its_own() {
        let mut report =
            report(vec![run(PLAIN, json!({"ratio": 0.26})), run("write", json!({"ratio": 0.1}))], Vec::new());
        report.machine.database = vec![("SQLite".to_owned(), "3.50".to_owned())];
        let page = page(&report);
        let lines = section(&page, "Targets");
        assert!(lines.iter().any(|line| line.ends_with("| 0.26 | ≥ 0.25 | of the yardstick | reached |")), "{page}");
        assert!(!lines.iter().any(|line| line.contains("in one write")), "{page}");
    }

    #[test]
    fn rates_below_half_of_the_plain_drain_are_marked() {
        let benches = vec![run(PLAIN, json!({"events_per_s": 1000}))];
        let cliffs = vec![
            run("payload of 2 KB", json!({"events_per_s": 500, "payload_bytes": 2000})),
            run("1 worker", json!({"events_per_s": 499, "payload_bytes": 200})),
        ];
        let page = page(&report(benches, cliffs));
        assert_eq!(
            section(&page, "No cliffs")[3..],
            [
                "| payload of 2 KB | 500/s | 1 MB/s | 0.5 | – |  |  |",
                "| 1 worker | 499/s | 0.1 MB/s | 0.499 | – | **below half** |  |"
            ]
        );
    }

    #[test]
    fn a_failure_is_told_on_one_line_that_ends_no_table() {
        let page = page(&report(vec![failed("hot", "a | b\nc"), run("drain", json!({"lost": 2}))], Vec::new()));
        assert_eq!(section(&page, "What went wrong")[2..], ["| hot | a \\| b c |", "| drain | 2 events lost |"]);
        assert_eq!(
            section(&page, "Benches")[3..],
            ["| hot | – | – | – | – | **FAILED** |", "| drain | – | – | – | – | **FAILED** |"]
        );
    }

    #[test]
    fn costs_are_listed_of_those_that_ran_and_commands_of_all() {
        let costs = json!({"wal_bytes_per_event": 1051.25, "statements_per_event": 0.0031, "dead_tuples": 0});
        let page = page(&report(vec![run("drain", costs), failed("hot", "no server")], Vec::new()));
        assert_eq!(section(&page, "What an event costs")[3..], ["| drain | 1,051 | 0.003 | 0 | – |"]);
        assert_eq!(
            section(&page, "Do it again")[1..],
            ["```sh", "pillarbox bench drain", "pillarbox bench hot", "```"]
        );
        assert_eq!(
            section(&page, "Pictures"),
            ["![Log written per event](wal.svg)", "![Statements per event](statements.svg)"]
        );
    }

    #[test]
    fn transactions_are_not_called_statements() {
        let costs = json!({"statements_per_event": 0.0031, "modes": [{"statements_per_s": 0.5}]});
        let runs = vec![run("drain", costs.clone()), run("idle", costs)];
        for (counted, title) in [(Counted::Statements, "Statements"), (Counted::Transactions, "Transactions")] {
            let page = page(&Report { counted, ..report(runs.clone(), Vec::new()) });
            assert!(section(&page, "What an event costs")[1].contains(title), "{page}");
            assert_eq!(section(&page, "Pictures"), [format!("![{title} per event](statements.svg)")]);
            let target = format!("| idle: {} | – | 0.5 |", counted.name());
            assert!(section(&page, "Targets").iter().any(|line| line.starts_with(&target)), "{page}");
        }
    }

    #[test]
    fn each_way_from_commit_to_handler_has_a_line() {
        let latency = json!({"p50": 40, "p95": 80.0, "p99": 900, "max": 12_345});
        let runs = vec![run("latency", json!({"hot_us": latency, "other_node_us": latency})), run("write", json!({}))];
        let page = page(&report(runs, Vec::new()));
        assert_eq!(
            section(&page, "From commit to handler")[2..],
            [
                "| latency, same process | 40 µs | 80 µs | 900 µs | 12.3 ms |",
                "| latency, another node | 40 µs | 80 µs | 900 µs | 12.3 ms |",
            ]
        );
    }

    #[test]
    fn the_naive_loop_is_compared_unless_something_was_wrong() {
        assert_eq!(remark(&run("drain", json!({"naive_ratio": 12.34}))), "12.3 times the naive loop");
        assert_eq!(remark(&run("drain", json!({"naive_ratio": 12.34, "lost": 1}))), "**FAILED**");
    }

    #[test]
    fn figures_have_as_many_digits_as_mean_something() {
        let table = [(0.0, "0"), (0.45678, "0.457"), (1.5, "1.5"), (12.34, "12.3"), (123_456.7, "123,457")];
        for (figure, text) in table {
            assert_eq!(plain(figure), text);
        }
    }
}
