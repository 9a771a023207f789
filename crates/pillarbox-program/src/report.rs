//! Results, as text for a person or as one line of JSON.

use std::io::{self, Write as _};

use comfy_table::{CellAlignment, Row, Table, presets};
use indicatif::HumanCount;
use pillarbox::event::Timestamp;
use serde::Serialize;

use crate::failure::Failure;

/// Tells the person at the terminal something. A closed stderr is no reason to stop.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a result as one line of JSON, or as text for a person.
pub fn print_either(json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json { print(&serde_json::to_string(report)?) } else { print(&text()) }
}

/// Prints a result.
pub fn print(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        // The reader has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Lines of a name, a figure and its meaning.
pub fn table(lines: &[(&str, String, &str)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, figure, meaning) in lines {
        table.add_row([*name, figure.as_str(), *meaning]);
    }
    if let Some(figures) = table.column_mut(1) {
        figures.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Rows under a heading.
pub fn listing(heading: impl Into<Row>, rows: impl IntoIterator<Item = impl Into<Row>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heading).add_rows(rows);
    table
}

/// Text from elsewhere, safe for a terminal: what has an effect there, or is not seen, is escaped.
pub fn plain(text: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !turns_the_line(*c) && !is_invisible(*c);
    text.chars().map(|c| if is_plain(&c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

/// True for what takes no room, so that two names which look alike are not the same. Of marks that shape what stands beside them, as in
/// emoji, only those that never do are meant.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// True if what follows may be shown at another place of the line, or on another line: marks of direction, and separators.
fn turns_the_line(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text, or a dash if there is none.
pub fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), plain)
}

/// An error, cut to fit a line of a terminal unless it is to be shown `whole`. It is cut in its middle: its beginning says where it happened, and
/// its end what.
pub fn error(text: Option<&str>, whole: bool) -> String {
    const BEGINNING: usize = 24;
    const END: usize = 44;
    let text = or_dash(text);
    let characters = text.chars().count();
    if whole || characters <= BEGINNING + END + 1 {
        return text;
    }
    let (beginning, end) = (text.chars().take(BEGINNING), text.chars().skip(characters - END));
    beginning.chain(['…']).chain(end).collect()
}

/// A time, in the width of all others, so that a column of them can be compared at a glance.
#[must_use]
pub fn time(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// A number and its noun: "1 event", "2,000 events".
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number with its thousands set apart.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A rate, rounded to whole events.
pub fn rate(per_second: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is a small positive number")]
    let whole = per_second.round() as u64;
    format!("{}/s", grouped(whole))
}

/// Microseconds in the unit a person reads best.
pub fn micros(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = micros as f64;
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", value / 1e3),
        _ => format!("{:.2} s", value / 1e6),
    }
}

/// Events per second.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
pub fn per_second(events: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { events as f64 / seconds } else { 0.0 }
}

/// A value rounded for a report: more digits would suggest more precision than was measured.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_table_moves_the_cursor() {
        assert_eq!(plain("a\u{1b}[2J\nü"), "a\\u{1b}[2J\\nü");
    }

    #[test]
    fn times_have_the_same_width() {
        let times = [0, 250_000, 1_234_567].map(|micros| time(Timestamp::from_micros(micros)));
        assert_eq!(
            times,
            ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.250000Z", "1970-01-01T00:00:01.234567Z"]
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([7, 1_500, 2_345_000].map(micros), ["7 µs", "1.5 ms", "2.35 s"]);
        assert_eq!([0, 1, 1000].map(|number| counted(number, "line")), ["0 lines", "1 line", "1,000 lines"]);
        assert_eq!(rate(1234.5), "1,235/s");
        assert!((rounded(0.123_456, 3) - 0.123).abs() < f64::EPSILON);
    }
}
