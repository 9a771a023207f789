//! A bar while something is under way.

use indicatif::{ProgressBar, ProgressStyle};

/// Counts towards `total` events. It draws on stderr, and only if that is a terminal.
pub fn bar(total: u64, verb: &str) -> ProgressBar {
    styled(ProgressBar::new(total), &format!("{{bar:40}} {{pos}}/{{len}} {verb}  {{per_sec}}"))
}

/// Counts events whose total is unknown. It draws as [`bar`] does.
pub fn counter(verb: &str) -> ProgressBar {
    styled(ProgressBar::no_length(), &format!("{{spinner}} {{pos}} {verb}  {{per_sec}}"))
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
