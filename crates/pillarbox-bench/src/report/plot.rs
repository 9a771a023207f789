//! Plots as SVG text: lines over an axis, and bars to compare. They know nothing of benches.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::failure::Failure;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error + Send + Sync>>;

/// The title of a plot, and the labels of its axes, which name the units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) title: &'static str,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
}

/// A line and its name in the legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const SIZE: (u32, u32) = (920, 440);
/// The room for the names of benches: beside bars, and in the legend of lines.
const NAMES: u32 = 250;
const LEGEND: u32 = 230;
const TITLE: (&str, u32) = ("sans-serif", 20);
const TEXT: (&str, u32) = ("sans-serif", 14);
const MESH: RGBColor = RGBColor(225, 225, 225);

/// Colours that colour-blind people can tell apart too, by Okabe and Ito; without yellow, which is hard to see on
/// white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(60, 60, 60),
];

/// Lines over an axis that begins at zero, as the time of a run does.
pub(crate) fn lines(frame: Frame, lines: &[Line]) -> Result<String, Failure> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = 0.0..beyond(points().map(|(x, _)| *x));
    let y = 0.0..beyond(points().map(|(_, y)| *y));
    paint(|canvas| draw_lines(canvas, frame, x, y, &|x| short(*x), lines))
}

/// Lines over named steps, 0, 1, 2 …, on a logarithmic axis, for values that differ by powers of ten and are never
/// zero.
pub(crate) fn steps(frame: Frame, steps: &[&str], lines: &[Line]) -> Result<String, Failure> {
    let heights = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).filter(|y| *y > 0.0);
    let lowest = heights().reduce(f64::min).unwrap_or(1.0);
    let y = (lowest / 2.0..beyond(heights()) * 2.0).log_scale();
    // A little more than the last step, which would have no label at the very end.
    let x = (0.0..last(steps.len()) + 0.25).step(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the axis has a label per step")]
    let name = |x: &f64| steps.get(x.round() as usize).copied().unwrap_or_default().to_owned();
    paint(|canvas| draw_lines(canvas, frame, x, y, &name, lines))
}

fn draw_lines<X, Y>(
    canvas: &Canvas<'_>,
    frame: Frame,
    x: X,
    y: Y,
    x_label: &dyn Fn(&f64) -> String,
    lines: &[Line],
) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let (plot, legend) = canvas.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&plot)
        .caption(frame.title, TITLE)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(frame.x)
        .y_desc(frame.y)
        .x_label_formatter(x_label)
        .y_label_formatter(&|y| short(*y))
        .y_labels(8)
        .label_style(TEXT)
        .bold_line_style(MESH)
        .max_light_lines(1)
        .draw()?;
    let rows = (TITLE.1 + 40..).step_by(22);
    for ((line, colour), row) in lines.iter().zip(COLOURS.iter().cycle()).zip(rows) {
        let (style, row) = (colour.stroke_width(2), i32::try_from(row)?);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        legend.draw(&PathElement::new([(0, row), (18, row)], style))?;
        legend.draw(&Text::new(line.name.clone(), (26, row - 7), TEXT))?;
    }
    Ok(())
}

/// A bar for each name, from the top down, with its figure behind it.
pub(crate) fn bars(frame: Frame, bars: &[(String, f64)]) -> Result<String, Failure> {
    paint(|canvas| draw_bars(canvas, frame, bars))
}

fn draw_bars(canvas: &Canvas<'_>, frame: Frame, bars: &[(String, f64)]) -> Drawn {
    let x = 0.0..beyond(bars.iter().map(|(_, figure)| *figure)) * 1.1;
    // Rows are numbered from the bottom, and read from the top.
    let name = |row: &SegmentValue<usize>| match row {
        SegmentValue::CenterOf(row) => bars.iter().rev().nth(*row).map_or_else(String::new, |(name, _)| name.clone()),
        SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
    };
    let mut chart = ChartBuilder::on(canvas)
        .caption(frame.title, TITLE)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(x, (0..bars.len().saturating_sub(1)).into_segmented())?;
    chart
        .configure_mesh()
        .x_desc(frame.x)
        .y_desc(frame.y)
        .y_labels(bars.len())
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&name)
        .label_style(TEXT)
        .disable_y_mesh()
        .bold_line_style(MESH)
        .max_light_lines(1)
        .draw()?;
    for (row, (_, figure)) in bars.iter().rev().enumerate() {
        let corners = [(0.0, SegmentValue::Exact(row)), (*figure, SegmentValue::Exact(row + 1))];
        let mut bar = Rectangle::new(corners, COLOURS[0].filled());
        bar.set_margin(4, 4, 0, 0);
        chart.draw_series([bar])?;
        let label = EmptyElement::at((*figure, SegmentValue::CenterOf(row))) + Text::new(short(*figure), (6, -6), TEXT);
        chart.draw_series([label])?;
    }
    Ok(())
}

fn paint(draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> Result<String, Failure> {
    let mut svg = String::new();
    let canvas = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = canvas.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&canvas));
    let drawn = drawn.and_then(|()| canvas.present().map_err(Into::into));
    // The backend writes the end of the document when it is dropped.
    drop(canvas);
    drawn.map(|()| svg).map_err(Failure::Plot)
}

/// The end of an axis: a little above the highest value, and never zero.
fn beyond(values: impl Iterator<Item = f64>) -> f64 {
    let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if highest > 0.0 { highest * 1.05 } else { 1.0 }
}

#[expect(clippy::cast_precision_loss, reason = "a plot has few steps")]
fn last(steps: usize) -> f64 {
    steps.saturating_sub(1).max(1) as f64
}

/// A number in a form that fits an axis: "250 k".
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        1e9.. => (value / 1e9, " G"),
        1e6.. => (value / 1e6, " M"),
        1e4.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { title: "Delivered & <counted>", x: "seconds", y: "events/s" };

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.to_owned(), points: points.to_vec() }
    }

    /// The text of every element; fails if the document is not well-formed.
    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
    }

    fn assert_says(svg: &str, wanted: &[&str]) {
        let texts = texts(svg);
        for text in wanted {
            assert!(texts.iter().any(|found| found == text), "{text:?} is not among {texts:?}");
        }
    }

    #[test]
    fn a_plot_of_lines_has_title_units_and_legend() {
        let svg = lines(FRAME, &[line("one <node>", &[(0.0, 1.0), (2.0, 90_000.0)]), line("two", &[(1.0, 5.0)])]);
        assert_says(&svg.unwrap(), &["Delivered & <counted>", "seconds", "events/s", "one <node>", "two", "80 k"]);
    }

    #[test]
    fn steps_are_named_below_their_points() {
        let svg = steps(FRAME, &["p50", "p99", "max"], &[line("hot", &[(0.0, 0.04), (1.0, 1.0), (2.0, 30.0)])]);
        assert_says(&svg.unwrap(), &["p50", "p99", "max", "hot", "0.1", "10"]);
    }

    #[test]
    fn every_bar_has_its_name_and_its_figure() {
        let bars_of = [("write".to_owned(), 1051.0), ("drain".to_owned(), 0.25)];
        assert_says(&bars(FRAME, &bars_of).unwrap(), &["write", "drain", "1051", "0.25"]);
    }

    #[test]
    fn plots_without_data_are_drawn_all_the_same() {
        for svg in [lines(FRAME, &[]), steps(FRAME, &["p50"], &[]), bars(FRAME, &[])] {
            assert_says(&svg.unwrap(), &["seconds", "events/s"]);
        }
        let nothing = [line("still", &[(0.0, 0.0), (1.0, f64::NAN)])];
        assert_says(&lines(FRAME, &nothing).unwrap(), &["still"]);
    }

    #[test]
    fn numbers_fit_an_axis() {
        let table = [
            (0.0, "0"),
            (0.05, "0.05"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1051.4, "1051"),
            (25_000.0, "25 k"),
            (1_250_000.0, "1.25 M"),
            (3e9, "3 G"),
        ];
        for (value, text) in table {
            assert_eq!(short(value), text);
        }
    }
}
